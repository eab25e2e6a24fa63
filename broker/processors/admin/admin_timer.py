# SPDX-License-Identifier: Apache-2.0
"""Timers for administrators and slaves: their progress, the waiting messages, and the engine.

60, 61, 5001. The progress is 56 bytes as in config/timercheck, the counts are JSON as in
config/timermetrics. Both are SYSTEM_ERROR (1) with timerWheelEnable=false. The only engine is the
file wheel ("F"): switching to RocksDB ("R") is INVALID_PARAMETER (29), as by an original broker
without it. Java: AdminBrokerProcessor.
"""

from __future__ import annotations

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.timer.timers import Timers
from txrocketmq.remoting.call import Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.operations.admin import SwitchTimerEngineRequestHeader
from txrocketmq.remoting.settings.config_file import Configuration


class AdminTimerProcessor:
    """Shows what timers do."""

    def __init__(self, configuration: Configuration, timers: Timers) -> None:
        self._configuration = configuration
        self._config = configuration.get(StoreConfig)
        self._timers = timers

    @serves(admin.GET_TIMER_CHECK_POINT)
    def check_point(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Returns how far timer messages are read and delivered."""
        if not (self._timers.is_open or self._config.timer_wheel_enable):
            raise ResponseError(ResponseCode.SYSTEM_ERROR, "The checkpoint is null")
        return Reply(body=self._timers.progress().encode())

    @serves(admin.GET_TIMER_METRICS)
    def metrics(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Returns how many timer messages wait, by topic."""
        if not (self._timers.is_open or self._config.timer_wheel_enable):
            raise ResponseError(ResponseCode.SYSTEM_ERROR, "The timer message store is null")
        return Reply(body=self._timers.metrics.encode())

    @serves(admin.SWITCH_TIMER_ENGINE)
    def switch(self, request: Request[SwitchTimerEngineRequestHeader]) -> Reply[NoHeader]:
        """Has the file wheel take messages again if timerStopEnqueue had stopped it."""
        wrong = ""
        if not self._config.timer_wheel_enable:
            wrong = "broker timerWheelEnable is false"
        elif request.header.engine_type == "R":
            wrong = "timerUseRocksDB muse be configured true when broker start"
        elif request.header.engine_type != "F":
            wrong = "param error"
        if wrong:
            raise ResponseError(ResponseCode.INVALID_PARAMETER, wrong)
        if self._config.timer_stop_enqueue:
            self._configuration.update({"timerStopEnqueue": "false"})
        return Reply(remark="switch timer engine success")
