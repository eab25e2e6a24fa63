# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json

import pytest

from tests.broker.conftest import Parts
from tests.fakes import request
from txrocketmq.broker.processors.admin.admin_timer import AdminTimerProcessor
from txrocketmq.broker.store.formats import formats
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol.operations.admin import SwitchTimerEngineRequestHeader


@pytest.fixture
def admin(parts: Parts) -> AdminTimerProcessor:
    parts.timers.open(parts.now_ms)
    return AdminTimerProcessor(parts.configuration, parts.timers)


def test_progress(parts: Parts, admin: AdminTimerProcessor) -> None:
    body = admin.check_point(request(NoHeader())).body_bytes
    assert len(body) == 56
    assert formats.TIMER_CHECK.parse(body).last_read_time_ms == parts.now_ms // 1000 * 1000


def test_counts(parts: Parts, admin: AdminTimerProcessor) -> None:
    parts.timers.metrics.add("T", 3)
    shown = json.loads(admin.metrics(request(NoHeader())).body_bytes)
    assert shown["timingCount"] == {"T": {"count": 3, "timeStamp": parts.now_ms}}
    assert set(shown["dataVersion"]) == {"counter", "stateVersion", "timestamp"}


def test_without_the_wheel(parts: Parts) -> None:
    parts.set(timer_wheel_enable=False)
    admin = AdminTimerProcessor(parts.configuration, parts.timers)
    with pytest.raises(ResponseError, match="The checkpoint is null"):
        admin.check_point(request(NoHeader()))
    with pytest.raises(ResponseError, match="The timer message store is null"):
        admin.metrics(request(NoHeader()))
    with pytest.raises(ResponseError, match="broker timerWheelEnable is false"):
        admin.switch(request(SwitchTimerEngineRequestHeader(engine_type="F")))


def test_the_engine(parts: Parts, admin: AdminTimerProcessor) -> None:
    parts.set(timer_stop_enqueue=True)
    told = admin.switch(request(SwitchTimerEngineRequestHeader(engine_type="F")))
    assert told.remark == "switch timer engine success"
    assert not parts.store.config.timer_stop_enqueue
    for engine, remark in (("R", "timerUseRocksDB"), (None, "param error"), ("x", "param error")):
        with pytest.raises(ResponseError, match=remark) as refused:
            admin.switch(request(SwitchTimerEngineRequestHeader(engine_type=engine)))
        assert refused.value.code == ResponseCode.INVALID_PARAMETER
