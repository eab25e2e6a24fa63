# SPDX-License-Identifier: Apache-2.0
"""A master and its slave for tests, and the link between them, which can be cut."""
