# SPDX-License-Identifier: Apache-2.0
"""What administrators do: topics, groups, offsets, messages, clients and servers.

This is the inside of the client: programs import what is public from txrocketmq.client.
"""
