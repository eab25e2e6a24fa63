# SPDX-License-Identifier: Apache-2.0
"""What makes the forms that wait, for asyncio and for Twisted out of one client."""
