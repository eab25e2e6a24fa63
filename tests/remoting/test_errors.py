# SPDX-License-Identifier: Apache-2.0
"""The error tree, and what an answer's error says."""

from __future__ import annotations

import pytest

from txrocketmq.remoting import errors
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import RemotingError, ResponseError


def test_all_errors_have_one_root() -> None:
    found = [each for each in vars(errors).values() if isinstance(each, type)]
    kinds = [each for each in found if issubclass(each, Exception)]
    assert len(kinds) > 5
    assert all(issubclass(each, RemotingError) for each in kinds)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (ResponseCode.TOPIC_NOT_EXIST, "CODE: 17 (TOPIC_NOT_EXIST) DESC: no topic"),
        (4711, "CODE: 4711 (UNKNOWN) DESC: no topic"),
    ],
)
def test_an_answers_error_names_its_code(code: int, text: str) -> None:
    assert str(ResponseError(code, "no topic")) == text
