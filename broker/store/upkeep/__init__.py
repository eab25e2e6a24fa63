# SPDX-License-Identifier: Apache-2.0
"""What goes on while a store is open: flush, dispatch, retention, check point."""
