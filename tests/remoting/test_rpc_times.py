# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.remoting import rpc_times
from txrocketmq.remoting.command import ONEWAY_FLAG, RemotingCommand
from txrocketmq.remoting.rpc_times import RpcKind, RpcTimes


def test_requests_are_counted_by_kind() -> None:
    times = RpcTimes()
    times.add((11, 0, True, False), 2_500)
    times.add((11, 0, True, False), 20)
    held = times.kinds[RpcKind(11, 0, is_held=True, is_oneway=False)]
    assert held.total == 2_520
    assert sum(held.counts) == 2


def test_a_run_is_counted_by_its_codes_and_flags() -> None:
    times = RpcTimes()
    commands = [RemotingCommand(10), RemotingCommand(310), RemotingCommand(310)]
    commands.append(RemotingCommand(310, flag=ONEWAY_FLAG))
    times.add_run(commands, 4, 10)
    counts = {(kind.code, kind.answer, kind.is_oneway): sum(its.counts)
              for kind, its in times.items()}  # fmt: skip
    assert counts == {(10, 10, False): 1, (310, 10, False): 2, (310, 10, True): 1}
    assert all(its.total == 4 * sum(its.counts) for its in times.kinds.values())


def test_codes_that_are_none_do_not_fill_the_memory() -> None:
    times = RpcTimes()
    for code in range(3_000):
        times.add((code, 3, False, False), 1)
    assert len(times.kinds) == rpc_times._MOST
