# SPDX-License-Identifier: Apache-2.0
"""The instance that producers and consumers of a process share: routes, heartbeats, requests.

This is the inside of the client: programs import what is public from txrocketmq.client.
"""
