# SPDX-License-Identifier: Apache-2.0
"""Files, what of them is in memory, and damage that is found in them."""
