# SPDX-License-Identifier: Apache-2.0
"""Accounts: who sends a request, and whether they may.

This is the inside of the servers; programs use `txrocketmq.client`.
"""

if __name__ != "txrocketmq.access":
    raise ImportError("import txrocketmq.access, not access: each class would exist twice")
