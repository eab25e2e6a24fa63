# SPDX-License-Identifier: Apache-2.0
"""The commit log: records are encoded, appended, walked through and confirmed."""
