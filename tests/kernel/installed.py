# SPDX-License-Identifier: Apache-2.0
"""The compiled kernel, for tests that compare it with the forms in Python."""

from __future__ import annotations

from typing import Any

import pytest

from txrocketmq.remoting.process.compiled_kernel import compiled_kernel, why_no_kernel

kernel: Any = compiled_kernel()
needs_kernel = pytest.mark.skipif(
    kernel is None, reason=f"{why_no_kernel() or 'there is no kernel'}; `make kernel` builds it"
)
