# SPDX-License-Identifier: Apache-2.0
"""The brokers behind the proxy: their routes and addresses, and what they know of topics."""
