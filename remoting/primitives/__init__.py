# SPDX-License-Identifier: Apache-2.0
"""Numbers, texts and values as Java has them, below everything that is sent."""
