# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

from txrocketmq.remoting.protocol.operations import admin


def test_headers_are_the_originals(same_headers_as_the_original: Callable[..., None]) -> None:
    same_headers_as_the_original(admin)


def test_fields_that_have_no_class_in_the_original() -> None:
    assert admin.SwitchTimerEngineRequestHeader(engine_type="F").encode() == {"E_T": "F"}
    mode = admin.SetCommitLogReadModeRequestHeader.decode({"READ_AHEAD_MODE": "1"})
    assert mode.read_ahead_mode == "1"
