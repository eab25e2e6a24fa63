# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from enum import IntEnum
from inspect import getmembers, isclass

from tests.proxy.schema.test_tables import GOLDEN
from txrocketmq.proxy.schema import enums


def test_every_value_is_that_of_the_official_client() -> None:
    official = json.loads(GOLDEN.read_text("utf-8"))["enums"]
    ours = {
        name: {value.name: value.value for value in enum}
        for name, enum in getmembers(enums, isclass)
        if issubclass(enum, IntEnum) and enum is not IntEnum
    }
    assert ours == {
        name.rpartition(".")[2]: values
        for name, values in official.items()
        if not name.endswith(".Code")
    }
