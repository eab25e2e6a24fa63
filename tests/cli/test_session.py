# SPDX-License-Identifier: Apache-2.0
"""How commands of the client end, and what they say then. Running them is in tests/process."""

from __future__ import annotations

import io

import pytest
from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure

from txrocketmq.cli import session
from txrocketmq.client.base.errors import NoRoute
from txrocketmq.remoting.errors import ConnectError


def ended(error: Exception) -> tuple[int, str]:
    said = io.StringIO()
    return session.exit_code("prog", Failure(error), 130, said), said.getvalue()


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (NoRoute("T", "nobody has it"), "prog: topic T has no route: nobody has it\n"),
        (ConnectError("refused"), "prog: refused\n"),
        (ValueError("no number"), "prog: no number\n"),
    ],
)
def test_an_error_is_one_sentence(error: Exception, text: str) -> None:
    assert ended(error) == (1, text)


def test_an_interrupt_says_nothing() -> None:
    assert ended(CancelledError()) == (130, "")


def test_a_reader_that_has_gone_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[int] = []
    monkeypatch.setattr(session, "forget_stdout", lambda: forgotten.append(1))
    assert ended(BrokenPipeError()) == (0, "")
    assert forgotten == [1]


def test_a_defect_shows_where_it_is() -> None:
    code, text = ended(KeyError("oops"))
    assert code == 1
    assert text.startswith("prog: a defect of this program:\n")
    assert "KeyError" in text
