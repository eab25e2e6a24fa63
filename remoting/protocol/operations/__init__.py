# SPDX-License-Identifier: Apache-2.0
"""Requests of operators: administration, access control, replication."""
