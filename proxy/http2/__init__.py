# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 for servers: h2 decodes and encodes it, and here are the limits around it."""
