# SPDX-License-Identifier: Apache-2.0
"""Reading messages out of the store."""
