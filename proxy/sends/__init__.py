# SPDX-License-Identifier: Apache-2.0
"""Sends: what a message must be, what becomes of its properties, and which queue it goes to."""
