# SPDX-License-Identifier: Apache-2.0
"""How messages are popped, acknowledged and hidden."""
