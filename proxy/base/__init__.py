# SPDX-License-Identifier: Apache-2.0
"""What all methods use: statuses, names, caches."""
