# SPDX-License-Identifier: Apache-2.0
"""One queue of a consumer: messages that wait, offsets, locks.

This is the inside of the client: programs import what is public from txrocketmq.client.
"""
