# SPDX-License-Identifier: Apache-2.0
"""Between the client's thread and those of the program.

This is the inside of the client: programs import what is public from txrocketmq.client.
"""
