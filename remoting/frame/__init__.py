# SPDX-License-Identifier: Apache-2.0
"""Frames and connections: bytes to commands and back."""
