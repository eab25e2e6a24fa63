# SPDX-License-Identifier: Apache-2.0
"""Routes, as clients of gRPC see them: queues, at endpoints that are those of the proxy."""
