# SPDX-License-Identifier: Apache-2.0
"""What the faces with a thread share, judged by the one for programs that wait."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.fake_core import Core
from txrocketmq.client.base.errors import MQClientError
from txrocketmq.client.blocking import blocking
from txrocketmq.client.thread import leftovers as forgotten
from txrocketmq.client.thread.reactor_thread import ReactorThread

Made: Any = blocking(Core)
WHERE = {"namesrv_addr": "127.0.0.1:1"}


def test_what_cannot_start_leaves_no_thread() -> None:
    with pytest.raises(MQClientError):
        Made("bad", **WHERE).start()
    with pytest.raises(TypeError):
        Made("g", unknown=1, **WHERE)
    assert ReactorThread._shared is None
    assert forgotten._open == {}


def let_go(made: Any) -> Any:
    """Returns what was made, when the client's thread has let go of the call that made it."""
    made._thread.ask(lambda: None)
    return made


def test_one_that_was_never_started_goes_by_itself() -> None:
    made = let_go(Made("g", **WHERE))
    assert ReactorThread._shared is not None
    del made
    assert ReactorThread._shared is None


def test_one_that_was_never_started_gives_its_instance_back() -> None:
    """So that another one may have the name, with settings of its own."""
    keeps_thread = let_go(Made("g", **WHERE))
    instances = keeps_thread._thread.instances
    made = let_go(Made("g", instance_name="named", **WHERE))
    assert instances.count == 2
    del made
    with pytest.raises(TypeError):
        Made(5, 6, 7, 8, instance_name="named", **WHERE)
    with pytest.raises(RuntimeError, match="no group"):
        Made("none", instance_name="named", **WHERE)
    made = let_go(Made("g", instance_name="named", namesrv_addr="127.0.0.1:2"))
    assert instances.count == 2
    del made, keeps_thread
    assert ReactorThread._shared is None


def test_what_is_forgotten_is_ended() -> None:
    made = Made("g", **WHERE).start()
    made._end_at_exit()
    assert made._life.core.said == ["start", "shutdown"]
    made.shutdown()


def test_a_process_that_was_forked_leaves_the_object_to_its_parent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Made("g", **WHERE).start()
    with monkeypatch.context() as child:
        child.setattr(made._thread, "_gone", "created before os.fork()")
        made.shutdown()
        made.shutdown()
    assert made._life.core.said == ["start"]
    assert forgotten._open == {}
    made._has_left = False  # as it is in the parent
    made.shutdown()
    assert made._life.core.said == ["start", "shutdown"]
