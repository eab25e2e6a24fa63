# SPDX-License-Identifier: Apache-2.0
"""The kernel: sends from bytes to records; which one is used, and its reference in Python."""
