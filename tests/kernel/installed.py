# SPDX-License-Identifier: Apache-2.0
"""The compiled kernel, for tests that compare it with the forms in Python."""

from __future__ import annotations

from typing import Any

import pytest

from txrocketmq.remoting.process.compiled_kernel import installed_kernel

_found: Any = installed_kernel()
kernel: Any = None if isinstance(_found, str) else _found
needs_kernel = pytest.mark.skipif(kernel is None, reason=f"{_found}: `make kernel` builds it")
