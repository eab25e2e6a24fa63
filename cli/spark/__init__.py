# SPDX-License-Identifier: Apache-2.0
"""Commands that read stores without Spark: ingest and report."""
