# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments where they enter, derived from declared types."""
