# SPDX-License-Identifier: Apache-2.0
"""Changes settings of a running broker as an administrator does."""

from __future__ import annotations

from tests.broker.test_service import Client, Scene
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol.operations import admin


def update(scene: Scene, **settings: object) -> None:
    """Changes settings, named as on the wire; fails if the broker does not take them."""
    text = "".join(f"{key}={value}\n" for key, value in settings.items())
    answer = Client(scene).ask(admin.UPDATE_BROKER_CONFIG, NoHeader(), text.encode())
    assert answer.code == ResponseCode.SUCCESS, answer.remark
