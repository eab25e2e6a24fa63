# SPDX-License-Identifier: Apache-2.0
"""Where clients send to and read from: routes, addresses and choices among them, without I/O."""
