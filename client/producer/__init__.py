# SPDX-License-Identifier: Apache-2.0
"""Producers: plain ones, transactions, requests and replies.

This is the inside of the client: programs import what is public from txrocketmq.client.
"""
