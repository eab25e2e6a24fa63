# SPDX-License-Identifier: Apache-2.0
"""Half messages, their ends, and the questions about those that have none."""
