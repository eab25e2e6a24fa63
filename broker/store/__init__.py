# SPDX-License-Identifier: Apache-2.0
"""The messages on disk: log, queues, index, and what keeps them right."""
