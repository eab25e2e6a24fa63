# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json

from tests.proxy.schema.test_tables import GOLDEN
from txrocketmq.proxy.schema.codes import Code


def test_every_code_is_that_of_the_official_client() -> None:
    official = json.loads(GOLDEN.read_text("utf-8"))["enums"]["apache.rocketmq.v2.Code"]
    ours = {code.name: code.value for code in Code}
    assert ours == {**official, "INVALID_CLIENT_PROPERTIES": 40_021}  # newer than the client
