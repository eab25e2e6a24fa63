# SPDX-License-Identifier: Apache-2.0
"""What administrators do: topics, groups, offsets, messages, clients and servers."""
