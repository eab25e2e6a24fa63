# SPDX-License-Identifier: Apache-2.0
"""Connections between a master and its slaves, which carry no commands."""
