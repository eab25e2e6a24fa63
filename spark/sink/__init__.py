# SPDX-License-Identifier: Apache-2.0
"""Writing rows as messages: at least once, and effectively once in replayed micro-batches."""
