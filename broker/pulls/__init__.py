# SPDX-License-Identifier: Apache-2.0
"""What pulls wait for, and what they select: long polling, filters, offsets of broadcasts."""
