# SPDX-License-Identifier: Apache-2.0
"""Opening a store: what is compared, completed and reported before it is used."""
