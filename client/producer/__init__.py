# SPDX-License-Identifier: Apache-2.0
"""Producers: plain ones, transactions, requests and replies."""
