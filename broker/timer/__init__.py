# SPDX-License-Identifier: Apache-2.0
"""Timer messages: they wait for delivery times of their own, and are delivered then."""
