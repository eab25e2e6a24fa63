# SPDX-License-Identifier: Apache-2.0
"""Requests that are served from their bytes, before they become commands."""
