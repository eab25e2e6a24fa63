# SPDX-License-Identifier: Apache-2.0
"""Consumers: push, pop, lite pull and pull.

This is the inside of the client: programs import what is public from txrocketmq.client.
"""
