# SPDX-License-Identifier: Apache-2.0
"""The broker's settings, and the original's keys."""
