# SPDX-License-Identifier: Apache-2.0
"""How a report is shown: as a page and on a terminal."""
