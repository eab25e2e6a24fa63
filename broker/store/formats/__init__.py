# SPDX-License-Identifier: Apache-2.0
"""The bytes of the store's files, its settings and its errors."""
