# SPDX-License-Identifier: Apache-2.0
"""gRPC: calls, the methods that serve them, and the connections that carry them."""
