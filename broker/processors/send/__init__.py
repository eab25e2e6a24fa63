# SPDX-License-Identifier: Apache-2.0
"""Requests that write messages."""
