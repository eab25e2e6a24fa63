# SPDX-License-Identifier: Apache-2.0
"""The error of ACL 1."""

from __future__ import annotations


class AclError(ValueError):
    """An account, a pattern or a file that cannot be used; the text says which and why.

    Where the original raises an AclException, it is the text of that. Java: AclException.
    """
