# SPDX-License-Identifier: Apache-2.0
"""How listeners are called, and what follows from what they return."""
