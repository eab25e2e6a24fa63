# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from txrocketmq.remoting.process import compiled_kernel as its
from txrocketmq.remoting.process.compiled_kernel import compiled_kernel, why_no_kernel


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    its._found.cache_clear()
    yield
    its._found.cache_clear()


def _install(monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    monkeypatch.setitem(sys.modules, "txrocketmq_kernel", module)


def _with_seam(seam: int) -> ModuleType:
    module: Any = ModuleType("txrocketmq_kernel")
    module.SEAM = seam
    return module  # type: ignore[no-any-return]


def test_it_is_used_if_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TXROCKETMQ_KERNEL", raising=False)
    module = _with_seam(its.SEAM)
    _install(monkeypatch, module)
    assert (compiled_kernel(), why_no_kernel()) == (module, "")


def test_without_it_there_is_none_and_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TXROCKETMQ_KERNEL", raising=False)
    _install(monkeypatch, None)
    assert compiled_kernel() is None
    assert "the compiled kernel" in why_no_kernel()


def test_one_with_another_seam_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXROCKETMQ_KERNEL", "")
    _install(monkeypatch, _with_seam(its.SEAM + 1))
    assert compiled_kernel() is None
    assert why_no_kernel().endswith(
        f"has the seam {its.SEAM + 1}, and this release knows {its.SEAM}"
    )


def test_the_variable_turns_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, _with_seam(its.SEAM))
    monkeypatch.setenv("TXROCKETMQ_KERNEL", " OFF ")
    assert (compiled_kernel(), why_no_kernel()) == (None, "TXROCKETMQ_KERNEL is off")


def test_the_variable_can_require_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXROCKETMQ_KERNEL", "require")
    _install(monkeypatch, None)
    with pytest.raises(ValueError, match="install the package txrocketmq-kernel"):
        compiled_kernel()
    its._found.cache_clear()
    _install(monkeypatch, _with_seam(its.SEAM))
    assert compiled_kernel() is not None


def test_other_words_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXROCKETMQ_KERNEL", "on")
    with pytest.raises(ValueError, match="it can only be off or require"):
        compiled_kernel()
