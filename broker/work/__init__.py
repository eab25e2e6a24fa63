# SPDX-License-Identifier: Apache-2.0
"""How work is done: in slices, in pages, with patience for the disk, saved afterwards."""
