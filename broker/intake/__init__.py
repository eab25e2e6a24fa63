# SPDX-License-Identifier: Apache-2.0
"""The way in for every message: what is done to it before the store takes it."""
