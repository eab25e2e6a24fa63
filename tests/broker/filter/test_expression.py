# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FakePeer, refused
from txrocketmq.broker.filter import expression
from txrocketmq.broker.filter.expression import (
    LEAST_CHARS,
    MAX_CHARS,
    Expression,
    ExpressionError,
    Expressions,
    NotCompiled,
)
from txrocketmq.broker.store.disk.steps import Steps, finished
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.properties import decode_properties, encode_properties


def text(**properties: str) -> str:
    return encode_properties(properties)


def test_properties_are_looked_at() -> None:
    expression = Expressions().compile("a > 5 AND b = 'x'")
    assert expression.wants(text(TAGS="t", a="6", b="x"))
    assert not expression.wants(text(a="5", b="x"))
    assert not expression.wants(text(a="none", b="x"))
    assert not expression.wants(text())


def test_many_names_are_looked_at_too() -> None:
    expression = Expressions().compile(" AND ".join(f"p{number} = '1'" for number in range(9)))
    values = {f"p{number}": "1" for number in range(9)}
    assert expression.wants(text(**values))
    assert not expression.wants(text(**{**values, "p3": "2"}))


@given(st.dictionaries(st.text(), st.text(max_size=40)))
def test_odd_properties_disturb_nothing(properties: dict[str, str]) -> None:
    odd = "".join(f"{name}\x01{value}\x02" for name, value in properties.items())
    expression = Expressions().compile("a > 5 OR b = 'x' OR c <= 2.5 OR d = TRUE")
    assert expression.matches(decode_properties(odd.encode("utf-8", "replace").decode())) in (
        True,
        False,
    )
    assert expression.wants(odd) in (True, False)


def test_what_is_compiled_is_kept() -> None:
    expressions = Expressions()
    assert expressions.compile("a > 5") is expressions.compile("a > 5")
    for _ in range(2):
        with pytest.raises(ExpressionError, match="Encountered"):
            expressions.compile("a >")
    assert len(expressions) == 2
    assert expressions.is_kept("a >")


def test_no_more_is_kept_than_there_is_room_for() -> None:
    expressions = Expressions(max_kept_chars=4 * LEAST_CHARS)
    texts = [f"a > {number}" for number in range(5)]
    for each in texts[:4]:
        expressions.compile(each)
    expressions.compile(texts[0])
    expressions.compile(texts[4])
    assert [expressions.is_kept(each) for each in texts] == [True, False, True, True, True]
    expressions.compile("a IN (" + ", ".join(f"'{number:08}'" for number in range(80)) + ")")
    assert len(expressions) == 1


def test_long_ones_are_refused_and_not_kept() -> None:
    expressions = Expressions()
    with pytest.raises(ExpressionError, match=f"at most {MAX_CHARS} are allowed"):
        expressions.compile(f"a = '{'x' * 100_000}'")
    assert len(expressions) == 0
    expressions.compile(f"a = '{'x' * (MAX_CHARS - 6)}'")
    assert len(expressions) == 1


def test_the_parser_is_not_imported_before_it_is_needed() -> None:
    script = (
        "import sys\n"
        "import txrocketmq.broker.service\n"
        "assert 'lark' not in sys.modules\n"
        "from txrocketmq.broker.filter.expression import Expressions\n"
        "Expressions().compile('a > 5')\n"
        "assert 'lark' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


class Turns:
    """Runs work when it is told to."""

    def __init__(self) -> None:
        self.steps: list[Steps[None]] = []
        self.jobs: list[tuple[Callable[[], None], Callable[[Exception | None], None]]] = []
        self.expressions = Expressions(
            in_thread=lambda work, done: self.jobs.append((work, done)),
            in_turns=self.steps.append,
        )
        self.said: list[str] = []

    def ask(self, text: str, peer: FakePeer | None = None) -> Expression | None:
        try:
            return self.expressions.compile(text)
        except NotCompiled as waiting:
            then: Any = waiting.awaited
            then(peer or FakePeer(), lambda: self.said.append(text[:5]))
            return None

    def imported(self) -> None:
        work, done = self.jobs.pop()
        work()
        done(None)


def test_the_first_expression_waits_for_the_parser() -> None:
    turns = Turns()
    assert turns.ask("a > 5") is turns.ask("b > 5") is None
    assert (len(turns.jobs), turns.steps) == (1, [])
    turns.imported()
    finished(turns.steps.pop())
    assert turns.said == ["a > 5", "b > 5"]
    assert turns.ask("a > 5") is turns.ask("a > 5") is not None
    assert turns.ask("c > 5") is not None, "a short one is compiled at once"
    with pytest.raises(NotCompiled):
        turns.expressions.compile("d > 5", at_once=False)


def test_a_long_expression_is_compiled_in_steps() -> None:
    turns = Turns()
    turns.ask("a > 5")
    turns.imported()
    finished(turns.steps.pop())
    turns.said.clear()
    long = " OR ".join(f"a > {number}" for number in range(1_000))
    gone = FakePeer()
    assert turns.ask(long) is turns.ask(long) is turns.ask(long, gone) is turns.ask("b > 5") is None
    gone.close()
    (steps,) = turns.steps
    turns.steps.clear()
    assert sum(1 for _ in steps) > 70
    assert turns.said == ["a > 0", "a > 0", "b > 5"]
    assert turns.ask(long) is not None
    assert turns.ask(long + " OR") is None
    finished(turns.steps.pop())
    with pytest.raises(ExpressionError, match="Encountered"):
        turns.ask(long + " OR")


def test_a_crowd_that_waits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expression, "MAX_WAITING", 3)
    monkeypatch.setattr(expression, "MAX_WAITING_FOR_ONE", 2)
    turns = Turns()
    for text in ("a > 1", "a > 2", "a > 3", "a > 3"):
        assert turns.ask(text) is None
    with refused(ResponseCode.SYSTEM_BUSY, "3 expressions wait to be compiled"):
        turns.ask("a > 4")
    with refused(ResponseCode.SYSTEM_BUSY, "2 requests wait for this expression"):
        turns.ask("a > 3")


def test_one_who_fails_keeps_nobody_waiting() -> None:
    """Neither those who wait for the same expression nor those who come later."""
    turns, heard = Turns(), list[str]()

    def fails() -> None:
        raise ValueError("a defect")

    for text in ("a = 1", "b = 2"):
        for then in (fails, partial(heard.append, text)):
            with pytest.raises(NotCompiled) as waits:
                turns.expressions.compile(text)
            until: Any = waits.value.awaited
            until(FakePeer(), then)
    turns.imported()
    with pytest.raises(ValueError, match="a defect"):
        finished(turns.steps.pop())
    assert heard == ["a = 1", "b = 2"]
    assert turns.ask(" OR ".join(f"a > {number}" for number in range(1_000))) is None
    finished(turns.steps.pop())
    assert turns.said == ["a > 0"]
