# SPDX-License-Identifier: Apache-2.0
"""Requests about the clients themselves: heartbeats, locks, calls to a client."""
