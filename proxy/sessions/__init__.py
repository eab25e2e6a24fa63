# SPDX-License-Identifier: Apache-2.0
"""The clients of the proxy: who they are, what they were told, and what they can be asked."""
