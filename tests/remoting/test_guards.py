# SPDX-License-Identifier: Apache-2.0
"""Guards, and runs that end before what the guards have seen."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.remoting.test_dispatch import MAX, SEARCH, Runs, Scene, request
from txrocketmq.remoting.call import Buffer, Peer
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Run
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.guards import AHEAD, recognized


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


class Knowing:
    """A guard that recognizes requests for some topics, and lets pass those for others."""

    def __init__(self, *topics: str, others: tuple[str, ...] = ("B",)) -> None:
        self.topics, self.others = topics, others
        self.asked: list[int] = []
        self.looked: list[tuple[int, int]] = []

    def passed(self, _: Peer, commands: Sequence[RemotingCommand], at: int, end: int) -> int:
        self.looked.append((at, end))
        while at < end and (commands[at].ext_fields or {}).get("topic") in self.topics:
            at += 1
        return at

    def __call__(self, _: Peer, command: RemotingCommand) -> None:
        self.asked.append(command.opaque)
        if (command.ext_fields or {}).get("topic") not in self.others:
            raise ResponseError(16, "no")


@given(
    st.lists(st.sampled_from("ABX"), min_size=1, max_size=2 * AHEAD),
    st.lists(st.sampled_from([SEARCH.code, MAX.code]), min_size=2 * AHEAD, max_size=2 * AHEAD),
    st.booleans(),
    st.booleans(),
)
def test_what_a_guard_recognizes_it_is_not_asked_about(
    topics: list[str], codes: list[int], has_another: bool, goes_on: bool
) -> None:
    scene, knowing, seen = Scene(Runs()), Knowing("A"), list[int]()
    scene.dispatcher.guards.append(knowing)
    if has_another:
        scene.dispatcher.guards.append(lambda _, command: seen.append(command.opaque))
    requests = [
        request(code, at, topic=topic)
        for at, (topic, code) in enumerate(zip(topics, codes, strict=False))
    ]
    at = 0
    while at < len(requests):
        served = scene.dispatcher.serve(scene.peer, requests[at:], lambda: goes_on)
        assert served > 0
        at += served
    answers = scene.answers()
    assert [each.opaque for each in answers] == list(range(len(topics)))
    assert [each.code for each in answers] == [16 if topic == "X" else 0 for topic in topics]
    assert knowing.asked == [at for at, topic in enumerate(topics) if topic != "A"]
    if has_another:
        assert seen == [at for at, topic in enumerate(topics) if topic != "X"]
    else:
        assert all(end - begin <= len(requests) for begin, end in knowing.looked)


def test_few_are_recognized_ahead_of_what_is_served() -> None:
    knowing = Knowing("A")
    many = [request(MAX.code, at, topic="A") for at in range(10 * AHEAD)]
    assert recognized([knowing], Scene().peer, many) == AHEAD
    assert recognized([knowing, knowing], Scene().peer, many) == 0


def test_a_guard_that_cannot_recognize_lets_nobody_in() -> None:
    class Broken(Knowing):
        def passed(self, *_: object) -> int:
            raise ValueError("broken")

    scene = Scene()
    scene.dispatcher.guards.append(Broken("A"))
    answers = scene.ask(*(request(MAX.code, at, topic="A") for at in range(2)))
    assert [each.remark for each in answers] == ["ValueError: broken"] * 2


def test_a_request_that_comes_alone_is_recognized_by_the_only_guard() -> None:
    class Quick(Knowing):
        def knows(self, _: Peer, command: RemotingCommand) -> bool:
            self.looked.append((0, 0))
            return (command.ext_fields or {}).get("topic") in self.topics

    scene, quick = Scene(), Quick("A")
    scene.dispatcher.guards.append(quick)
    topics = "AABXA"
    for at, topic in enumerate(topics):
        scene.ask(request(MAX.code, at, topic=topic))
    assert quick.looked == [(0, 0), (0, 0), (0, 0), (0, 1), (0, 0), (0, 1), (0, 0)]
    assert quick.asked == [2, 3]
    seen: list[int] = []
    scene.dispatcher.guards.append(lambda _, command: seen.append(command.opaque))
    quick.looked.clear()
    (answer,) = scene.ask(request(MAX.code, 9, topic="A"))
    assert (answer.code, seen, quick.looked) == (0, [9], [(0, 1)]), "another guard is asked too"
    scene.dispatcher.guards.remove(quick)
    scene.ask(request(MAX.code, 10, topic="X"))
    assert seen == [9, 10]
    assert quick.asked == [2, 3], "which is none of the guards any more"
