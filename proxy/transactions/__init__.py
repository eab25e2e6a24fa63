# SPDX-License-Identifier: Apache-2.0
"""Transactions: their ends, the questions of brokers about them; and messages that are recalled."""
