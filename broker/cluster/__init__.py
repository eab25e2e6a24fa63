# SPDX-License-Identifier: Apache-2.0
"""What the broker asks and tells other servers: registration, routes, other brokers."""
