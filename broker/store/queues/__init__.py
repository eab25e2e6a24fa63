# SPDX-License-Identifier: Apache-2.0
"""Consume queues, queues of batches and light queues."""
