# SPDX-License-Identifier: Apache-2.0
"""What the broker remembers of topics, groups, offsets and clients."""
