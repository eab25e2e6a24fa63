# SPDX-License-Identifier: Apache-2.0
"""Requests that read messages and offsets."""
