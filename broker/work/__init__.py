# SPDX-License-Identifier: Apache-2.0
"""How work is done: in slices, in order, with patience for the disk, saved afterwards."""
