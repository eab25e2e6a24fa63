# SPDX-License-Identifier: Apache-2.0
"""Encrypted connections: contexts, what is read and what is written through them."""
