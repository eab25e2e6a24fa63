# SPDX-License-Identifier: Apache-2.0
"""How listeners are called, and what follows from what they return.

This is the inside of the client: programs import what is public from txrocketmq.client.
"""
