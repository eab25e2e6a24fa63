# SPDX-License-Identifier: Apache-2.0
"""Formats in which messages are printed, and lines are read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.cli.line_format import FormatReader, Parts, Printing
from txrocketmq.remoting.message.message import MessageExt

MESSAGE = MessageExt(
    "T",
    "zwölf".encode(),
    properties={"KEYS": "a b", "TAGS": "t", "x": "1", "y": "2", "UNIQ_KEY": "ID"},
    queue_id=3,
    queue_offset=7,
    store_timestamp=1_795_248_930_123,
    broker_name="broker-a",
)


@pytest.mark.parametrize(
    ("form", "printed"),
    [
        (r"%s\n", "zwölf\n"),
        ("%k|%g|%h|%s", "a b|t|x=1,y=2|zwölf"),
        ("%S %K", "6 3"),
        ("%t/%b/%p@%o %T %i", "T/broker-a/3@7 1795248930123 ID"),
        (r"é%%\t\r\0\\%s", "é%\t\r\0\\zwölf"),
    ],
)
def test_what_is_printed(form: str, printed: str) -> None:
    assert Printing(form)(MESSAGE) == printed.encode()


def test_bytes_are_printed_as_they_are() -> None:
    assert Printing(r"%s\xff")(MessageExt("T", b"\x00\xfe")) == b"\x00\xfe\xff"


def test_what_a_message_does_not_have_is_empty() -> None:
    assert Printing("[%k%g%h]")(MessageExt("T", b"")) == b"[]"


@pytest.mark.parametrize("made", [Printing, FormatReader])
@pytest.mark.parametrize(
    ("form", "why"),
    [("%q %s", "%q means nothing: there are %s"), ("%s%", "% means nothing"),
     (r"%s\q", r"\\q means nothing: there are \\n"), (r"%s\x1", "means nothing"),
     ("%s\\", "nothing")],
)  # fmt: skip
def test_what_means_nothing(made: type[Printing | FormatReader], form: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        made(form)


def test_a_text_without_fields_is_no_format() -> None:
    with pytest.raises(ValueError, match="it has no field such as %s"):
        Printing("Orders")


@pytest.mark.parametrize(
    ("form", "line", "parts"),
    [
        ("%s", b"a b", Parts(b"a b")),
        (r"%k:%s\n", b"k1 k2:a:b", Parts(b"a:b", keys=("k1", "k2"))),
        ("<%g> %h | %s.", b"<t> x=1,y== | b.", Parts(b"b", "t", (), {"x": "1", "y": "="})),
        ("%s %k", b"body key", Parts(b"body", keys=("key",))),
        ("%g,%s", b",b", Parts(b"b")),
    ],
)
def test_what_is_read(form: str, line: bytes, parts: Parts) -> None:
    assert FormatReader(form)(line) == parts


@pytest.mark.parametrize(
    ("form", "why"),
    [("%k%s", "nothing separates %s"), ("%s %s", "%s is there twice"), ("%k", "there is no %s"),
     ("%s %o", "%o means nothing: there are %s %k %g %h and %%")],
)  # fmt: skip
def test_formats_that_lines_cannot_have(form: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        FormatReader(form)


@pytest.mark.parametrize(
    ("form", "line"), [("%k:%s", b"body"), ("<%s>", b"<body"), ("%h %s", b"a b"), ("a%s", b"b")]
)
def test_lines_of_another_form(form: str, line: bytes) -> None:
    with pytest.raises(ValueError, match="does not have the form|is not a property"):
        FormatReader(form)(line)


@given(st.binary().filter(lambda body: b"\t" not in body), st.from_regex(r"[a-z]+", fullmatch=True))
def test_what_was_printed_is_read(body: bytes, key: str) -> None:
    form = "%k\\t%s"
    printed = Printing(form)(MessageExt("T", body, properties={"KEYS": key}))
    assert FormatReader(form)(printed) == Parts(body, keys=(key,))
