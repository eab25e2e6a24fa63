# SPDX-License-Identifier: Apache-2.0
"""One send: which queue, which broker, what is tried again."""
