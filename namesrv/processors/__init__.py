# SPDX-License-Identifier: Apache-2.0
"""Who answers which request of the name server."""
