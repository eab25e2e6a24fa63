# SPDX-License-Identifier: Apache-2.0
"""What the work of a broker on waiting messages has in common, and whether it may work at all."""
