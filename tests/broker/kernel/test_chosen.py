# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from txrocketmq.broker.kernel.chosen import SEAM, VARIABLE, chosen_kernel, kernel_text

NAME = "txrocketmq_kernel"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A package that looks like the compiled kernel."""
    module: Any = ModuleType(NAME)
    module.SEAM, module.__version__, module.Table, module.Rows = SEAM, "1.2", list, dict
    module.Pulls, module.pull_answer = set, min
    monkeypatch.setitem(sys.modules, NAME, module)
    monkeypatch.delenv(VARIABLE, raising=False)
    return module


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No such package."""
    monkeypatch.setitem(sys.modules, NAME, None)
    monkeypatch.delenv(VARIABLE, raising=False)


def test_it_is_used_where_it_is_installed(installed: Any) -> None:
    kernel = chosen_kernel()
    assert kernel is not None
    assert kernel == ("txrocketmq-kernel 1.2", list, dict, set, min)
    assert kernel_text() == "txrocketmq-kernel 1.2"


def test_it_can_be_off(installed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "off")
    del sys.modules[NAME]
    monkeypatch.setattr("builtins.__import__", None)
    assert chosen_kernel() is None
    assert kernel_text() == "off"


def test_one_with_another_seam_is_not_used(installed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    installed.SEAM = SEAM + 1
    assert chosen_kernel() is None
    assert f"has the seam {SEAM + 1}, not {SEAM}" in kernel_text()
    monkeypatch.setenv(VARIABLE, "require")
    with pytest.raises(ValueError, match="install the package txrocketmq-kernel"):
        chosen_kernel()


@pytest.mark.usefixtures("missing")
def test_without_it_there_is_none_unless_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen_kernel() is None
    assert kernel_text() == "none, since the compiled kernel is not installed"
    monkeypatch.setenv(VARIABLE, "require")
    with pytest.raises(ValueError, match=r"is not installed: install the package"):
        chosen_kernel()
    assert "is not installed" in kernel_text()


def test_other_words_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "on")
    with pytest.raises(ValueError, match="can only be off or require"):
        chosen_kernel()
