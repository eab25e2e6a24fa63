# SPDX-License-Identifier: Apache-2.0
"""Batches of rows: which, with which columns."""
