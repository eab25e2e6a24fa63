# SPDX-License-Identifier: Apache-2.0
"""The tables are compared field by field with what the official Python client declares."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from txrocketmq.proxy.schema import messages
from txrocketmq.proxy.schema.tables import FIELDS

PROGRAM = Path(__file__).parents[3] / "compat_tests/clients/python/grpc_descriptors.py"
"""What has described the official client."""
field_of = runpy.run_path(str(PROGRAM))["field_of"]
GOLDEN = Path(__file__).parents[2] / "golden" / "grpc" / "rocketmq-python-client-5.1.2.json"
NEWER = {"Settings.client_properties"}
"""Fields that the client does not know yet."""


@pytest.fixture(scope="module")
def official() -> Any:
    return json.loads(GOLDEN.read_text("utf-8"))


def test_every_field_is_that_of_the_official_client(official: Any) -> None:
    ours = {
        name: {
            field.name: field_of(field)
            for field in messages.message_type(name).DESCRIPTOR.fields
            if f"{name}.{field.name}" not in NEWER
        }
        for name, _ in messages.declared()
    }
    assert ours == official["messages"]


def test_what_is_newer_is_there() -> None:
    for each in NEWER:
        name, _, field = each.partition(".")
        assert field in messages.message_type(name).DESCRIPTOR.fields_by_name


def test_each_line_is_a_number_a_type_and_a_name() -> None:
    for line in FIELDS.strip().splitlines():
        words = line.split()
        if line.startswith(" "):
            assert len(words) in (3, 5), line
            assert words[0].isdigit(), line
        else:
            assert len(words) == 1, line
