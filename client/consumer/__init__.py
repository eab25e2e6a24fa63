# SPDX-License-Identifier: Apache-2.0
"""Consumers: push, pop, lite pull and pull."""
