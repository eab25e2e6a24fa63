# SPDX-License-Identifier: Apache-2.0
"""What other programs call our commands and their options."""
