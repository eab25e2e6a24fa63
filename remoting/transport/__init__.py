# SPDX-License-Identifier: Apache-2.0
"""Twisted: servers, clients, peers and what they write through."""
