# SPDX-License-Identifier: Apache-2.0
"""Whatever a request holds, it is answered: with a code of ours, never with a traceback.

Every code that a broker serves gets headers with missing, odd and extreme values, and bodies that
are none, on one broker after the other's doings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.broker.conftest import Parts
from tests.broker.test_all_processors import SERVED
from tests.examples import examples
from tests.fakes import NOW_MS, FakePeer
from txrocketmq.broker.all_processors import all_processors
from txrocketmq.remoting.call import Call, PendingReply, Reply, Request
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher, Registry
from txrocketmq.remoting.errors import HeaderError, ResponseError
from txrocketmq.remoting.header import HeaderField

CODES = [RequestCode(code) for code in sorted(SERVED)]

TEXTS = st.one_of(
    st.sampled_from(
        [
            "T", "g", "p", "TBW102", "%RETRY%g", "%DLQ%g", "SCHEDULE_TOPIC_XXXX", "", " ", "a b",
            "\0", "*", "a||b", "SINGLE_TAG", "AVG", "TAG", "SQL92", "TOPIC_PUT_NUMS", "{}", "0;1",
            "+message.type=FIFO", "TAGS\x01a\x02UNIQ_KEY\x01U\x02", "DELAY\x013\x02",
            "7F00000100002A9F0000000000000000", "R" * 300,
        ]
    ),
    st.text(max_size=20),
)  # fmt: skip
NUMBERS = st.one_of(
    st.integers(-1, 8).map(str),
    st.integers(-(2**63), 2**63 - 1).map(str),
    st.sampled_from(["2147483647", "-2147483648", "x", "", "1.5", "1700000000000", "9" * 30]),
)
BODIES = st.one_of(
    st.sampled_from(
        [
            b"", b"{}", b"[]", b"null", b"{", b"3", b'{"topic":"T"}', b"a=b\nbrokerPermission=6\n",
            b'{"consumerGroup":"g","clientId":"c","mqSet":[{"topic":"T","brokerName":"b"}]}',
            b'{"clientID":"c","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[{}]}]}',
            b'{"groupName":"g"}', b'{"groupConfigList":[{"groupName":null}]}',
            b'{"topicConfigList":[{"topicName":"T2"},{}]}',
            b'{"topic":"T","consumerGroup":"g","clientId":"c","strategyName":"AVG"}',
        ]
    ),
    st.binary(max_size=40),
)  # fmt: skip


def value_of(field: HeaderField) -> st.SearchStrategy[str | None]:
    kinds = {"str": TEXTS, "bool": st.sampled_from(["true", "false", "x"])}
    given_value = kinds.get(field.kind, NUMBERS)
    if "topic" in field.name:
        given_value = st.one_of(st.just("T"), given_value)
    return st.one_of(st.none(), given_value) if not field.mandatory else given_value


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    parts = Parts(tmp_path_factory.mktemp("bad-input"))
    yield Registry(*all_processors(parts))
    parts.store.stop(parts.now_ms)


def serve(registry: Registry, call: Call[Any, Any], ext: dict[str, str], body: bytes) -> None:
    """As the dispatcher does; what it would have to log as a failure of ours comes out."""
    command = RemotingCommand(call.code, ext, body, version=493)
    binding = registry.bindings[call.code]
    failures: list[Exception] = []
    if binding.handler is None:
        dispatcher = Dispatcher(
            registry, lambda: NOW_MS, lambda: 0, lambda _, __, error: failures.append(error)
        )
        dispatcher.serve(FakePeer(), [command])
        assert failures == []
        return
    try:
        header = call.request.decode(ext)
        request = Request(header, command, FakePeer(), NOW_MS, 0)
        answer = binding.handler(request)
    except (ResponseError, HeaderError):
        return
    assert answer is None or isinstance(answer, Reply | PendingReply)
    if isinstance(answer, Reply) and answer.header is not None:
        answer.header.encode()


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
@settings(
    max_examples=examples(10),  # of each of seventy requests
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_every_request_is_answered(
    registry: Registry, code: RequestCode, data: st.DataObject
) -> None:
    call = registry.bindings[code].call
    ext = {
        field.wire: value
        for field in call.request.fields
        if (value := data.draw(value_of(field), field.wire)) is not None
    }
    serve(registry, call, ext, data.draw(BODIES, "body"))


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_a_request_without_any_field_is_answered(registry: Registry, code: RequestCode) -> None:
    call = registry.bindings[code].call
    serve(registry, call, {}, b"")
    serve(registry, call, dict.fromkeys((field.wire for field in call.request.fields), ""), b"")
