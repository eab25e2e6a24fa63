# SPDX-License-Identifier: Apache-2.0
"""Settings of a broker that runs, changed as an administrator changes them."""

from __future__ import annotations

from tests.broker.test_service import Client, Scene
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol import admin


def update(scene: Scene, **settings: object) -> None:
    """Changes settings, named as on the wire; the broker must take them."""
    text = "".join(f"{key}={value}\n" for key, value in settings.items())
    answer = Client(scene).ask(admin.UPDATE_BROKER_CONFIG, NoHeader(), text.encode())
    assert answer.code == ResponseCode.SUCCESS, answer.remark
