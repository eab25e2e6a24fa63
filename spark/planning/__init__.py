# SPDX-License-Identifier: Apache-2.0
"""Which parts of a store a read consists of, and how a part is read."""
