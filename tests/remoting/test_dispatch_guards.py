# SPDX-License-Identifier: Apache-2.0
"""Guards, and runs that end before what the guards have seen."""

from __future__ import annotations

import pytest

from tests.remoting.test_dispatch import MAX, SEARCH, Runs, Scene, request
from txrocketmq.remoting.call import Buffer, Peer
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Run
from txrocketmq.remoting.errors import ResponseError


@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_a_guard_sees_each_request_once_although_runs_end_early(most: int) -> None:
    """The work of a run has a limit, and those behind it have passed the guard already."""

    class Short(Runs):
        def take(self, run: Run) -> list[Buffer]:
            run.end_at(most)
            return super().take(run)

    seen: list[int] = []
    runs = Short()
    scene = Scene(runs)

    def guard(_: Peer, command: RemotingCommand) -> None:
        seen.append(command.opaque)
        if (command.ext_fields or {}).get("topic") == "secret":
            raise ResponseError(16, "no")

    scene.dispatcher.guards.append(guard)
    topics = ["T", "T", "T", "secret", "secret", "T", "T", "T", "secret"]
    requests = [request(SEARCH.code, at, topic=topic) for at, topic in enumerate(topics)]
    requests.insert(7, request(MAX.code, 50))
    answers = scene.ask(*requests)
    order = [each.opaque for each in requests]
    assert seen == order
    assert [each.opaque for each in answers] == order
    assert [each.code for each in answers if each.opaque < 50] == [
        16 if topic == "secret" else 0 for topic in topics
    ]
    assert max(map(len, runs.seen)) <= most
