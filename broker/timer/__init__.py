# SPDX-License-Identifier: Apache-2.0
"""Timer messages: what waits for a time of its own, and how it is delivered then."""
