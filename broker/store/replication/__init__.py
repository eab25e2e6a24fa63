# SPDX-License-Identifier: Apache-2.0
"""Replication without I/O: bytes on the wire, a master's side of each slave, a slave's side."""
