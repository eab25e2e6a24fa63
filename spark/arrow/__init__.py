# SPDX-License-Identifier: Apache-2.0
"""What the readers share: records, walks, arrays, schemas, errors."""
