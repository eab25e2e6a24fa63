# SPDX-License-Identifier: Apache-2.0
"""What happens before a broker of a group is online, in a whole broker: see test_service.py."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.broker.replication.wire import ADDRESS, HA_ADDRESS, said
from tests.broker.test_service import Client, Scene
from tests.fakes import Asked
from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.parts import Parts
from txrocketmq.broker.replication.slave import Slave
from txrocketmq.broker.store.timers.timer_check import BY_ESCAPE, TimerProgress
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.protocol.body.route import BrokerData, TopicRouteData
from txrocketmq.remoting.protocol.operations.ha import ExchangeHAInfoResponseHeader
from txrocketmq.remoting.protocol.route import RegisterBrokerResponseHeader

NAME_SERVER = "127.0.0.1:9876"
SLAVE, OTHER = "10.0.0.1:10911", "10.0.0.5:10911"
EXCHANGE, ROUTE = RequestCode.EXCHANGE_BROKER_HA_INFO, RequestCode.GET_ROUTEINFO_BY_TOPIC
TIMERS = RequestCode.GET_TIMER_CHECK_POINT
OFFSETS, DELAYS = RequestCode.GET_ALL_CONSUMER_OFFSET, RequestCode.GET_ALL_DELAY_OFFSET
ONLINE = "this broker is online from now on"

Answer = Reply[Any] | Exception | Callable[[Asked], Reply[Any] | Exception]


def members(addresses: Mapping[int, str]) -> Reply[Any]:
    broker = BrokerData(
        broker_name="DEFAULT_BROKER", cluster="DefaultCluster", broker_addrs=addresses
    )
    return Reply(body=TopicRouteData(broker_datas=[broker]).encode())


def content(**tables: Any) -> Reply[Any]:
    return Reply(body=json.dumps(tables).encode())


class Group(Scene):
    """A broker of a group that has just started; the others answer what the test says."""

    def __init__(self, folder: Path, *, broker_id: int = 0, **settings: Any) -> None:
        role = {"broker_role": "SLAVE"} if broker_id else {}
        super().__init__(
            folder,
            {"total_replicas": 2, **role},
            broker_id=broker_id,
            enable_slave_acting_master=True,
            slave_read_enable=True,
            **settings,
        )
        self.answers: dict[int, Answer] = {
            RequestCode.REGISTER_BROKER: Reply(RegisterBrokerResponseHeader()),
            OFFSETS: content(offsetTable={}),
            DELAYS: content(offsetTable={}),
            EXCHANGE: Reply(ExchangeHAInfoResponseHeader()),
        }
        self.asked: list[Asked] = []
        self.lines: list[str] = []
        self.start()
        self.pass_ms(500)  # what happens every second is in the middle of `second`

    @property
    def parts(self) -> Parts:
        return self.broker.parts

    def second(self, count: int = 1) -> list[tuple[str, int]]:
        """Lets seconds pass; returns who was asked what."""
        self.asked.clear()
        for _ in range(count):
            self.lines += said(lambda: self.pass_ms(1_000))
            for _turn in range(10):
                self.lines += said(lambda: self.reactor.advance(0))
                for each in self.connections.take():
                    self._answer(each)
        return [(each.address, each.call.code) for each in self.asked]

    def _answer(self, asked: Asked) -> None:
        self.asked.append(asked)
        answer = self.answers.get(asked.call.code, ConnectError("nobody answers this"))
        outcome = answer(asked) if callable(answer) else answer
        self.lines += said(lambda: asked.pending.resolve(outcome))

    def connects(self, host: str = "10.0.0.1") -> None:
        """A slave connects, and says that it has nothing yet."""

        class Far:
            def wake(self) -> None:
                pass

            def close(self) -> None:
                pass

        replica = self.parts.master.begin(host, 5, Far())
        assert replica is not None
        replica.received(bytes(8))


@pytest.fixture
def master(tmp_path: Path) -> Group:
    return Group(tmp_path)


@pytest.fixture
def slave(tmp_path: Path) -> Group:
    return Group(tmp_path, broker_id=1)


# --- a master ---


def test_a_broker_without_others_is_online_at_once(master: Group) -> None:
    assert not master.broker.parts.registration.is_done
    assert master.broker.membership.why_not_ready() != ""
    assert master.connections.take() == [], "it does not register"
    master.answers[ROUTE] = members({})
    asked = master.second()
    assert asked == [(NAME_SERVER, ROUTE), (NAME_SERVER, RequestCode.REGISTER_BROKER)]
    assert ONLINE in master.lines
    assert master.broker.membership.why_not_ready() == ""
    (register,) = [each for each in master.asked if each.call.code == 103]
    header: Any = register.header
    assert header.enable_acting_master
    assert header.heartbeat_timeout_millis == 10_000
    assert len(master.connections.told) == 1, "and it says that it lives"
    assert ROUTE in {code for _, code in master.second()}, "it looks for others"


def test_its_own_address_under_its_name_is_nobody_else(master: Group) -> None:
    master.answers[ROUTE] = members({0: master.broker.address})
    master.second()
    assert ONLINE in master.lines


def test_nothing_is_delivered_before_it_is_online(master: Group) -> None:
    master.answers[ROUTE] = ConnectError("no")
    Client(master).send(DELAY="1")
    master.second(5)
    assert master.parts.store.max_offset("T", 0) == 0
    why = "this broker is not online yet: no name server says which brokers of its name there are"
    assert [each for each in master.lines if why in each] == [
        f"{why}; it is tried again every second"
    ]
    master.answers[ROUTE] = members({})
    master.second(2)
    assert master.parts.store.max_offset("T", 0) == 1


def test_a_slave_is_told_connects_and_says_how_far_it_is(master: Group) -> None:
    client = Client(master)
    for _ in range(9):
        client.send(DELAY="1")
    for _ in range(5):
        client.send()
    parts = master.parts
    parts.offsets.commit("g", "T", 0, 2)
    parts.offsets.commit("h", "T", 0, 4)
    master.answers |= {
        ROUTE: members({0: master.broker.address, 1: SLAVE}),
        DELAYS: content(offsetTable={1: 3, 2: 7}),
        OFFSETS: content(offsetTable={"T@g": {0: 5}, "T@h": {0: 1}, "T@new": {0: 99}}),
    }
    assert master.second() == [(NAME_SERVER, ROUTE), (SLAVE, EXCHANGE)]
    header: Any = master.asked[1].header
    assert header.master_ha_address == parts.master.address != ""
    assert header.master_address == master.broker.address
    assert master.second() == [(NAME_SERVER, ROUTE)]
    assert f"the slave {SLAVE} has not connected yet" in master.lines[-1]
    master.connects()
    asked = master.second()
    assert [each for each in asked if each[0] == SLAVE] == [(SLAVE, DELAYS), (SLAVE, OFFSETS)]
    assert ONLINE in master.lines
    assert parts.offsets.query("g", "T", 0) == 5
    assert parts.offsets.query("h", "T", 0) == 4, "nothing goes back"
    assert parts.offsets.query("new", "T", 0) == 5, "nor beyond the end"
    master.second(3)
    assert parts.store.max_offset("T", 0) == 5 + 9 - 3, "what it has delivered is not again"


def with_timers(master: Group) -> TimerProgress:
    """Two messages wait; returns the progress of a slave that has sent the first one elsewhere."""
    client = Client(master)
    client.send(TIMER_DELAY_MS="3000")
    client.send(TIMER_DELAY_MS="40000")
    master.answers[ROUTE] = members({1: SLAVE})
    master.connects()
    reached_ms = (master.clock.now_ms() // 1000 + 10) * 1000
    return TimerProgress(reached_ms, queue_offset=2, state_version=BY_ESCAPE)


def test_timer_messages_that_a_slave_has_sent_elsewhere_are_passed_over(master: Group) -> None:
    master.answers[TIMERS] = Reply(body=with_timers(master).encode())
    master.second(2)
    assert ONLINE in master.lines
    master.second(20)
    assert master.parts.store.max_offset("T", 0) == 0
    master.second(20)
    assert master.parts.store.max_offset("T", 0) == 1


@pytest.mark.parametrize("how", ["original", "unknown", "nonsense"])
def test_timer_messages_of_which_a_slave_says_nothing_are_delivered(
    master: Group, how: str
) -> None:
    progress = with_timers(master)
    master.answers[TIMERS] = {
        "original": Reply(body=progress._replace(state_version=0).encode()),
        "unknown": Reply(code=ResponseCode.SYSTEM_ERROR, remark="The checkpoint is null"),
        "nonsense": Reply(body=b"\xff" * 56),
    }[how]
    master.second(2)
    assert ONLINE in master.lines
    master.second(10)
    assert master.parts.store.max_offset("T", 0) == 1


def test_a_slave_that_does_not_answer_about_timers_is_asked_again(master: Group) -> None:
    progress = with_timers(master)
    master.second(2)
    assert ONLINE not in master.lines
    assert f"the broker {SLAVE} does not answer: nobody answers this" in master.lines[-1]
    master.answers[TIMERS] = Reply(body=progress.encode())
    master.second()
    assert ONLINE in master.lines


def test_a_slave_that_does_not_connect_is_told_again(master: Group) -> None:
    master.answers[ROUTE] = members({1: SLAVE})
    times = [each for each in master.second(25) if each == (SLAVE, EXCHANGE)]
    assert len(times) == 3
    assert not master.broker.parts.registration.is_done


def test_a_slave_that_connects_from_elsewhere_counts_as_well(master: Group) -> None:
    master.answers[ROUTE] = members({1: SLAVE, 2: OTHER})
    master.connects("10.0.9.9")
    master.second(2)
    assert ONLINE not in master.lines, "one of two"
    assert f"the slave {OTHER} has not connected yet" in master.lines[-1]
    master.connects("10.0.9.8")
    master.second()
    assert ONLINE in master.lines


@pytest.mark.parametrize(
    ("code", "answer", "why"),
    [
        (EXCHANGE, ConnectError("no"), f"the broker {SLAVE} does not answer: no"),
        (EXCHANGE, Reply(code=ResponseCode.SYSTEM_ERROR, remark="x"), "with code 1: x"),
        (DELAYS, Reply(body=b"["), f"the slave {SLAVE} does not say how far it is"),
        (DELAYS, content(offsetTable={"x": 1}), f"the slave {SLAVE} does not say how far it is"),
        (OFFSETS, content(offsets={}), f"the slave {SLAVE} does not say how far it is"),
        (OFFSETS, content(offsetTable={"T": {0: 1}}), "does not name a topic and a group"),
    ],
)
def test_what_a_slave_cannot_answer_keeps_the_master_waiting(
    master: Group, code: int, answer: Answer, why: str
) -> None:
    master.connects()
    right = master.answers[code]
    master.answers |= {ROUTE: members({1: SLAVE}), code: answer}
    master.second(3)
    assert ONLINE not in master.lines
    assert any(why in each for each in master.lines), master.lines
    master.answers[code] = right
    master.second(12)
    assert ONLINE in master.lines


def test_it_may_be_skipped(tmp_path: Path) -> None:
    skips = Group(tmp_path / "skips", skip_pre_online=True)
    assert skips.connections.take() != []
    alone = Group(tmp_path / "alone", namesrv_addr="")
    assert alone.broker.membership.why_not_ready() == "", "nobody could know of it"


# --- a slave ---


def test_a_slave_asks_its_master_and_follows_it(
    slave: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = ExchangeHAInfoResponseHeader(master_ha_address=HA_ADDRESS)
    slave.answers |= {ROUTE: members({0: ADDRESS}), EXCHANGE: Reply(told)}
    assert slave.second() == [(NAME_SERVER, ROUTE), (ADDRESS, EXCHANGE)]
    assert slave.parts.slave is not None
    assert (slave.parts.slave.ha_address, slave.parts.slave.master_address) == (HA_ADDRESS, ADDRESS)
    slave.second(3)
    assert ONLINE not in slave.lines
    monkeypatch.setattr(Slave, "is_following", True)
    slave.second()
    assert ONLINE in slave.lines
    assert not slave.parts.acting.acts


def test_a_slave_without_a_master_is_online_at_once_and_acts(slave: Group) -> None:
    slave.answers[ROUTE] = members({2: OTHER})
    message = InnerMessage("New", 0, b"", 0, bytes(8), bytes(8), {})
    slave.parts.store.put([message.to_put()], slave.clock.now_ms())
    asked = slave.second()
    assert (NAME_SERVER, RequestCode.REGISTER_BROKER) in asked
    assert slave.parts.acting.acts
    assert slave.parts.topics.get("New") is not None, "its readers are served"
    slave.answers[ROUTE] = members({0: ADDRESS, 1: slave.broker.address})
    slave.second(2)
    assert not slave.parts.acting.acts


def test_a_slave_with_a_larger_id_does_not_act(slave: Group, tmp_path: Path) -> None:
    other = Group(tmp_path / "other", broker_id=3)
    other.answers[ROUTE] = members({2: OTHER})
    other.second()
    assert ONLINE in other.lines
    assert not other.parts.acting.acts


def test_a_master_that_serves_no_slaves_is_not_waited_for(slave: Group) -> None:
    slave.answers[ROUTE] = members({0: ADDRESS})
    slave.second()
    assert ONLINE in slave.lines


def test_a_master_that_says_nonsense_is_asked_again(slave: Group) -> None:
    told = ExchangeHAInfoResponseHeader(master_ha_address="nowhere")
    slave.answers |= {ROUTE: members({0: ADDRESS}), EXCHANGE: Reply(told)}
    slave.second(3)
    assert ONLINE not in slave.lines
    assert any("says that it serves slaves at 'nowhere'" in each for each in slave.lines)
