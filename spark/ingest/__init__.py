# SPDX-License-Identifier: Apache-2.0
"""Stores to Parquet tables, incrementally and exactly once."""
