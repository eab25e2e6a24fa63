# SPDX-License-Identifier: Apache-2.0
"""Requests of mqadmin, dashboards and exporters."""
