# SPDX-License-Identifier: Apache-2.0
"""The hash table of the messages by key."""
