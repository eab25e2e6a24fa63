# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: INP001 - a program, not a module of the tests
"""Prints the definitions of the official Python gRPC client as JSON: tests/golden/grpc.

Run it with a Python that has rocketmq-python-client; `compat_tests/test_grpc_schema.py` does. With
`txrocketmq` on the path, its definitions are loaded into the same process first.
"""

import importlib.util
import json
from typing import Any


def field_of(field: Any) -> dict[str, Any]:
    """Describes a field."""
    its = field.message_type or field.enum_type
    choice = field.containing_oneof
    return {
        "number": field.number,
        "type": field.type,
        "of": its.full_name if its else None,
        "many": field.is_repeated,
        "presence": field.has_presence,
        "choice": choice.name if choice else None,
    }


def enum_of(enum: Any) -> dict[str, int]:
    """Describes an enumeration."""
    return {value.name: value.number for value in enum.values}


def main() -> None:
    """Prints all of them."""
    if importlib.util.find_spec("txrocketmq") is not None:
        from txrocketmq.proxy.schema import messages  # noqa: PLC0415

        assert messages.message_type("Settings")(client_type=1).SerializeToString() == b"\x08\x01"
    from rocketmq.grpc_protocol import (  # type: ignore[import-not-found]  # noqa: PLC0415
        definition_pb2,
        service_pb2,
    )

    found: dict[str, Any] = {"messages": {}, "enums": {}, "methods": {}}
    for file in (definition_pb2.DESCRIPTOR, service_pb2.DESCRIPTOR):
        for name, message in file.message_types_by_name.items():
            found["messages"][name] = {each.name: field_of(each) for each in message.fields}
            for enum in message.enum_types:
                found["enums"][enum.full_name] = enum_of(enum)
        for enum in file.enum_types_by_name.values():
            found["enums"][enum.full_name] = enum_of(enum)
        for service in file.services_by_name.values():
            for method in service.methods:
                found["methods"][method.name] = [
                    method.input_type.name,
                    method.client_streaming,
                    method.output_type.name,
                    method.server_streaming,
                ]
    print(json.dumps(found, sort_keys=True, separators=(",", ":")))


if __name__ == "__main__":
    main()
