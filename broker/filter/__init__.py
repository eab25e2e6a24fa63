# SPDX-License-Identifier: Apache-2.0
"""Filters by properties: the SQL92 grammar, its evaluation, and the bitmaps of consumers."""
