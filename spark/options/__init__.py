# SPDX-License-Identifier: Apache-2.0
"""Options: names, values, offsets, conditions."""
