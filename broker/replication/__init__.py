# SPDX-License-Identifier: Apache-2.0
"""Replication as a part of the broker: a master, and what it does for its slaves."""
