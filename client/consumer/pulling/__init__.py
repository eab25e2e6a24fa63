# SPDX-License-Identifier: Apache-2.0
"""How queues are pulled ahead of what is consumed.

This is the inside of the client: programs import what is public from txrocketmq.client.
"""
