# SPDX-License-Identifier: Apache-2.0
"""The tables of a store besides its messages, for the option `table`."""
