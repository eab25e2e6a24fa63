# SPDX-License-Identifier: Apache-2.0
"""The process around a server: its clock, threads, log, limits and metrics."""
