# SPDX-License-Identifier: Apache-2.0
"""What makes the forms that wait, for asyncio and for Twisted out of one client.

This is the inside of the client: programs import what is public from txrocketmq.client.
"""
