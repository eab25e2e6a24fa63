# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.broker.conftest import Parts
from tests.fakes import FakePeer
from txrocketmq.broker.all_processors import all_processors
from txrocketmq.broker.engines.role import Role
from txrocketmq.broker.intake.after_durable import AfterDurable
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.pop.pop import Pop
from txrocketmq.broker.service import Broker
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.transaction.check import TransactionCheck
from txrocketmq.remoting.call import CALLS
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Registry
from txrocketmq.remoting.errors import ResponseError

READS = {"NOTIFICATION", "POLLING_INFO"}
"""What a slave serves, though its processor writes for other requests."""


def refused(role: Role, code: int) -> ResponseError | None:
    try:
        role.refuse(FakePeer(), RemotingCommand(code, {}))
    except ResponseError as error:
        return error
    return None


def test_a_master_has_no_guard_and_refuses_nothing() -> None:
    role = Role(StoreConfig())
    assert role.writes
    assert role.guards() == []
    assert not any(refused(role, code) for code in CALLS)


def test_a_slave_refuses_what_writes_and_serves_what_reads() -> None:
    role = Role(StoreConfig(broker_role="SLAVE"))
    assert not role.writes
    assert role.guards() == [role.refuse, role.refuse_pull]
    expected = {code: call.at_slave for code, call in CALLS.items()}
    found = {code: error and error.code for code in CALLS for error in [refused(role, code)]}
    assert found == expected
    error = refused(role, RequestCode.SEND_MESSAGE_V2)
    assert error is not None
    assert error.code == ResponseCode.SERVICE_NOT_AVAILABLE
    assert "this broker is a slave: send SEND_MESSAGE_V2 to its master" in str(error.remark)
    for code in (RequestCode.END_TRANSACTION, RequestCode.RECALL_MESSAGE):
        error = refused(role, code)
        assert error is not None
        assert error.code == ResponseCode.SLAVE_NOT_AVAILABLE
    assert refused(role, RequestCode.PULL_MESSAGE) is None
    assert refused(role, RequestCode.UPDATE_CONSUMER_OFFSET) is None
    assert refused(role, 99_999) is None, "the dispatcher answers that it is not supported"


def _writes(processor: object, depth: int = 2) -> bool:
    """Whether a processor holds something that puts messages."""
    held: list[Any] = list(vars(processor).values()) if hasattr(processor, "__dict__") else []
    if any(isinstance(each, Intake | AfterDurable | Pop | TransactionCheck) for each in held):
        return True
    ours = [
        each for each in held if type(each).__module__.startswith("txrocketmq.broker.processors")
    ]
    return depth > 0 and any(_writes(each, depth - 1) for each in ours)


def test_each_request_that_can_put_messages_says_so(parts: Parts) -> None:
    """Else a slave would serve it: it is found by what the processor of the request holds."""
    forgotten = [
        binding.call.name
        for processor in all_processors(parts)
        if _writes(processor)
        for binding in Registry(processor).bindings.values()
        if binding.call.at_slave is None and binding.call.name not in READS
    ]
    assert not forgotten, forgotten


@pytest.mark.parametrize("role", ["ASYNC_MASTER", "SLAVE"])
def test_the_ports_of_a_broker_have_the_guards_of_its_role(tmp_path: Path, role: str) -> None:
    store = StoreConfig(store_path_root_dir=str(tmp_path), broker_role=role)
    guards = Broker(BrokerConfig(), store).guards
    assert len(guards) == (2 if role == "SLAVE" else 0)


def test_pulls_are_served_as_slave_read_enable_says() -> None:
    is_read = False
    role = Role(StoreConfig(broker_role="SLAVE"), lambda: is_read)
    for code in (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE):
        with pytest.raises(ResponseError, match=r"\[REJECTREQUEST\]system busy") as refusal:
            role.refuse_pull(FakePeer(), RemotingCommand(code, {}))
        assert refusal.value.code == ResponseCode.SYSTEM_BUSY
    role.refuse_pull(FakePeer(), RemotingCommand(RequestCode.GET_MAX_OFFSET, {}))
    is_read = True
    role.refuse_pull(FakePeer(), RemotingCommand(RequestCode.PULL_MESSAGE, {}))
