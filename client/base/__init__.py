# SPDX-License-Identifier: Apache-2.0
"""Settings, errors and checks that all parts of the client use.

This is the inside of the client: programs import what is public from txrocketmq.client.
"""
