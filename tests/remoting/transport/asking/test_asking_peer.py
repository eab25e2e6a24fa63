# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from tests.remoting.transport.scene import HERE, Scene, answer
from txrocketmq.remoting.frame.frame import encode_frame


def test_answers_of_a_server_that_does_not_read_are_taken() -> None:
    """It may not read because its answers are not read: each side would wait for the other."""
    scene = Scene()
    scene.ask()
    end = scene.accept()
    (asked,) = end.heard()
    end.wire.producer.pauseProducing()
    assert end.wire.producerState == "producing"
    parts = [bytes(part) for part in encode_frame(answer(asked))]
    end.protocol.dataReceived(b"".join(parts)[:9])
    assert scene.outcomes == []
    end.protocol.dataReceived(b"".join(parts)[9:])
    assert [each.header.offset for each in scene.outcomes] == [5]
    assert not scene.connections.takes_more(HERE)
    end.wire.producer.resumeProducing()
    assert scene.connections.takes_more(HERE)
    scene.ask()
    (asked,) = end.heard()
    end.wire.producer.pauseProducing()
    end.protocol.dataReceived(b"\xff" * 20)
    assert end.wire.disconnecting
