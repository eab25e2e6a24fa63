# SPDX-License-Identifier: Apache-2.0
"""Requests of POP consumers."""
