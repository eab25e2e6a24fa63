# SPDX-License-Identifier: Apache-2.0
"""Messages: records, properties, ids, tags, batches."""
