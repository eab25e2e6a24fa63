# SPDX-License-Identifier: Apache-2.0
"""Commands for accounts, and for what these may do."""
