# SPDX-License-Identifier: Apache-2.0
"""Reading a cluster by pulling from its brokers."""
