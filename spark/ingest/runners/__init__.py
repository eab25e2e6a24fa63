# SPDX-License-Identifier: Apache-2.0
"""Who runs the tasks of an ingest: processes of this machine, or Spark."""
