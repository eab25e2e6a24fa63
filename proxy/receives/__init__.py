# SPDX-License-Identifier: Apache-2.0
"""Receives: messages are popped, kept hidden while they are worked on, and settled."""
