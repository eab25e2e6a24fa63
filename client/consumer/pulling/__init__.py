# SPDX-License-Identifier: Apache-2.0
"""How queues are pulled ahead of what is consumed."""
