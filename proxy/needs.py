# SPDX-License-Identifier: Apache-2.0
"""The packages that the proxy needs, which are those of the extra `grpc`."""

from __future__ import annotations

from importlib.util import find_spec


def missing() -> str:
    """Returns a sentence if a package is missing that the proxy needs."""
    names = [name for name in ("h2", "google.protobuf") if not _is_there(name)]
    if not names:
        return ""
    return f"the proxy needs {' and '.join(names)}: pip install 'txrocketmq[grpc]'"


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the package above it
        return False
