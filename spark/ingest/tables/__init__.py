# SPDX-License-Identifier: Apache-2.0
"""The tables that an ingest writes: Delta and Iceberg."""
