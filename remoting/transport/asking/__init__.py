# SPDX-License-Identifier: Apache-2.0
"""Connections that we open, over which we ask: what is other for them than for those of clients."""
