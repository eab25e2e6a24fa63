# SPDX-License-Identifier: Apache-2.0
"""What all methods of the proxy use: statuses, names, settings."""
