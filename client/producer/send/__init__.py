# SPDX-License-Identifier: Apache-2.0
"""One send: which queue, which broker, what is tried again.

This is the inside of the client: programs import what is public from txrocketmq.client.
"""
