# SPDX-License-Identifier: Apache-2.0
"""A master and a slave as processes: what was acknowledged outlives the master."""

from __future__ import annotations

import pytest

from txrocketmq.client import Admin, Producer, SendStatus, new_message
from txrocketmq.testing.replication.pair import Pair, running_pair


def bodies(pair: Pair) -> set[bytes]:
    with Admin(namesrv_addr=pair.namesrv_addr) as admin:
        return {found.body for found in admin.messages_by_key("Orders", "key")}


def test_a_pair_loses_its_master_and_goes_on() -> None:
    with running_pair() as pair:
        with Producer("shop", namesrv_addr=pair.namesrv_addr) as producer:
            sent = producer.send(new_message("Orders", "one", keys="key"))
            assert sent.status is SendStatus.SEND_OK, "the slave has it"
            with pair.partition():
                sent = producer.send(new_message("Orders", "two", keys="key"))
                assert sent.status is SendStatus.SLAVE_NOT_AVAILABLE
            pair.wait_copied()
        with pytest.raises(ValueError, match="there must not be two"):
            pair.promote()
        with pytest.raises(ValueError, match="both brokers run"):
            pair.restart()
        pair.kill()
        pair.promote()
        with Producer("shop", namesrv_addr=pair.namesrv_addr) as producer:
            sent = producer.send(new_message("Orders", "three", keys="key"))
            assert sent.status is SendStatus.SLAVE_NOT_AVAILABLE
            assert bodies(pair) == {b"one", b"two", b"three"}
            pair.restart()
            sent = producer.send(new_message("Orders", "four", keys="key"))
            assert sent.status is SendStatus.SEND_OK, "the old master has it, as a slave"
            pair.wait_copied()
