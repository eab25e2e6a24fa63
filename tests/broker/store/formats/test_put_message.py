# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from txrocketmq.broker.store.formats.put_message import PutMessage, PutStatus, refused


def test_what_is_refused_has_no_place() -> None:
    result = refused(PutStatus.MESSAGE_ILLEGAL, 5)
    assert result == (PutStatus.MESSAGE_ILLEGAL, -1, 0, -1, 5)


def test_a_plain_message_needs_no_more_than_its_place_and_hosts(
    message: Callable[..., PutMessage],
) -> None:
    plain = message("T", 3, b"body", tags="A")
    assert plain.properties == b"TAGS\x01A\x02"
    assert plain[-4:] == (0, 0, 0, 0)
    assert plain._fields[-4:] == (
        "flag",
        "sys_flag",
        "reconsume_times",
        "prepared_transaction_offset",
    )


def _tuples_in(root: Path) -> Iterator[tuple[str, list[ast.expr]]]:
    """The tuples of the broker that have as many elements as a message."""
    for path in sorted((root / "broker").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Tuple) and len(node.elts) == len(PutMessage._fields):
                yield path.relative_to(root).as_posix(), node.elts


def test_plain_tuples_have_the_fields_of_a_message_in_their_order(
    pytestconfig: pytest.Config,
) -> None:
    """Three are made or read for each send; all other messages are made by the names of fields."""
    places = {}
    for place, elements in _tuples_in(pytestconfig.rootpath):
        named = {
            at: each.id
            for at, each in enumerate(elements)
            if isinstance(each, ast.Name) and each.id in PutMessage._fields
        }
        if len(named) < 8:
            continue  # it is something else
        places[place] = len(named)
        assert named == {at: PutMessage._fields[at] for at in named}, place
    assert places == {
        "broker/store/log/encode.py": 15,
        "broker/processors/send/plain_sends.py": 13,
        "broker/processors/send/send_batch.py": 12,
    }
