# SPDX-License-Identifier: Apache-2.0
"""What pulls wait for, and what they want: long polling, filters, offsets of broadcasts."""
