# SPDX-License-Identifier: Apache-2.0
"""What a member of a group subscribes to, and which queues it gets.

This is the inside of the client: programs import what is public from txrocketmq.client.
"""
