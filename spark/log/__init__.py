# SPDX-License-Identifier: Apache-2.0
"""Reading the log of a store: where it begins and ends, and what is damaged."""
