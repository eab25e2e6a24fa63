# SPDX-License-Identifier: Apache-2.0
"""Reports about a store: each one is a query, a table and a plot."""
