# SPDX-License-Identifier: Apache-2.0
"""The kernel: sends from bytes to records, and pulls to answers; and its reference in Python."""
