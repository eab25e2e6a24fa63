# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from txrocketmq.remoting.process.compiled_kernel import (
    SEAM,
    VARIABLE,
    installed_kernel,
    kernel_is_off,
    wanted_kernel,
)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What looks like the compiled kernel."""
    module: Any = ModuleType("txrocketmq_kernel")
    module.SEAM = SEAM
    monkeypatch.setitem(sys.modules, "txrocketmq_kernel", module)
    monkeypatch.delenv(VARIABLE, raising=False)
    return module


def test_it_is_wanted_if_it_is_installed(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert wanted_kernel() is module
    assert installed_kernel() is module
    monkeypatch.setenv(VARIABLE, "require")
    assert wanted_kernel() is module
    assert not kernel_is_off()


def test_the_variable_turns_it_off(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, " OFF ")
    assert wanted_kernel() is None
    assert installed_kernel() is module
    assert kernel_is_off()


def test_one_with_another_seam_is_not_used(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module.SEAM += 1
    assert wanted_kernel() is None
    assert installed_kernel() == f"the compiled kernel has the seam {SEAM + 1}, not {SEAM}"


def test_without_it_there_is_none_unless_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "txrocketmq_kernel", None)
    monkeypatch.delenv(VARIABLE, raising=False)
    assert wanted_kernel() is None
    assert installed_kernel() == "the compiled kernel is not installed"
    monkeypatch.setenv(VARIABLE, "require")
    with pytest.raises(ValueError, match="is not installed: install the package txrocketmq-kernel"):
        wanted_kernel()


def test_other_words_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "on")
    with pytest.raises(ValueError, match="it can only be off or require"):
        wanted_kernel()
