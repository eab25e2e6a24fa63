# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.broker.filter.expression import (
    LEAST_CHARS,
    MAX_CHARS,
    ExpressionError,
    Expressions,
)
from txrocketmq.remoting.message.message import MessageExt, encode_message
from txrocketmq.remoting.message.properties import decode_properties


def record(**properties: str) -> memoryview:
    return memoryview(encode_message(MessageExt("T", b"body", 0, properties)))


def test_a_record_is_looked_at() -> None:
    expression = Expressions().compile("a > 5 AND b = 'x'")
    assert expression.wants_record(record(TAGS="t", a="6", b="x"))
    assert not expression.wants_record(record(a="5", b="x"))
    assert not expression.wants_record(record(a="none", b="x"))
    assert not expression.wants_record(record())


def test_many_names_are_looked_at_too() -> None:
    expression = Expressions().compile(" AND ".join(f"p{number} = '1'" for number in range(9)))
    values = {f"p{number}": "1" for number in range(9)}
    assert expression.wants_record(record(**values))
    assert not expression.wants_record(record(**{**values, "p3": "2"}))


@given(st.dictionaries(st.text(), st.text(max_size=40)), st.binary(max_size=80))
def test_odd_properties_and_torn_records_disturb_nothing(
    properties: dict[str, str], torn: bytes
) -> None:
    text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items())
    expression = Expressions().compile("a > 5 OR b = 'x' OR c <= 2.5 OR d = TRUE")
    assert expression.matches(decode_properties(text.encode("utf-8", "replace").decode())) in (
        True,
        False,
    )
    assert expression.wants_record(memoryview(torn)) in (True, False)


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
    for text in texts[:4]:
        expressions.compile(text)
    expressions.compile(texts[0])
    expressions.compile(texts[4])
    assert [expressions.is_kept(text) for text in texts] == [True, False, True, True, True]
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
