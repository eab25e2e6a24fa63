# SPDX-License-Identifier: Apache-2.0
"""Between the client's thread and those of the program."""
