# SPDX-License-Identifier: Apache-2.0
"""What is sent to the revive topic; what comes of it: test_revive_others.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.processors.send.test_send_message import KEY, batch_of, header, send, sent
from tests.broker.processors.sends import Sending
from tests.fakes import refused
from txrocketmq.remoting.codes import ResponseCode


@pytest.fixture
def sending(tmp_path: Path) -> Iterator[Sending]:
    made = Sending(tmp_path)
    yield made
    made.close()


def test_check_points_of_other_brokers_are_stored_as_such(sending: Sending) -> None:
    revive = sending.parts.pop.revive_topic
    body = (
        b'{"bn":"other","c":"g","d":[0],"it":60000,"n":1,"pt":1700000000000,"q":3,"so":5,"t":"T"}'
    )
    own = body.replace(b"other", sending.parts.config.broker_name.encode())
    properties = {"TAGS": "ck", "UNIQ_KEY": KEY, "CLUSTER": "none"}
    for _ in range(2):  # what is known of a header does not let others pass
        stored = sent(sending, header(revive.name, properties=properties), body=body)
        assert (stored.topic, stored.body) == (revive.name, body)
        assert stored.properties["CLUSTER"] == sending.parts.config.broker_cluster_name
        for wrong in (own, b"body"):
            with refused(ResponseCode.NO_PERMISSION, "that name another broker are taken here"):
                send(sending, header(revive.name, properties=properties), body=wrong)
    parts = batch_of({"TAGS": "ck"})
    with refused(ResponseCode.NO_PERMISSION, "one by one"):
        send(sending, header(revive.name, batch=True), body=parts)
