# SPDX-License-Identifier: Apache-2.0
"""What is no wire but used by all parts: the operating system, files that are replaced whole."""
