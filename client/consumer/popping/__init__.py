# SPDX-License-Identifier: Apache-2.0
"""How messages are popped, acknowledged and hidden.

This is the inside of the client: programs import what is public from txrocketmq.client.
"""
