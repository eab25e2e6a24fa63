# SPDX-License-Identifier: Apache-2.0
"""The DataFrames that reports read, and one pass over the log for all of them.

`records` is read once, with the columns that the chosen reports need and no others, and kept by
Spark in memory as far as it fits, else on its local disk; `messages` is the part of it that
consumers see. Bodies are never read.
"""
