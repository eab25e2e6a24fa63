# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool

from txrocketmq.proxy.schema import messages


def test_every_declared_message_has_a_class() -> None:
    names = [name for name, _ in messages.declared()]
    assert len(names) == len(set(names)) == 65
    for name in names:
        its = messages.message_type(name)
        assert its.DESCRIPTOR.full_name == f"apache.rocketmq.v2.{name}"
        assert its.FromString(its().SerializeToString()) == its()


def test_what_is_written_is_what_the_numbers_say() -> None:
    settings = messages.message_type("Settings")(client_type=1, client_properties={"a": "b"})
    settings.subscription.group.name = "g"
    settings.request_timeout.FromMilliseconds(3_000)
    expected = b"\x08\x01\x22\x02\x08\x03\x32\x05\x0a\x03\x12\x01g\x4a\x06\x0a\x01a\x12\x01b"
    assert settings.SerializeToString(deterministic=True) == expected
    assert settings.WhichOneof("pub_sub") == "subscription"
    assert not settings.HasField("backoff_policy")


def test_the_pool_is_private() -> None:
    """A second declaration in the common pool is allowed, as the official client makes it."""
    proto = descriptor_pb2.FileDescriptorProto(name="definition.proto", package=messages.PACKAGE)
    proto.message_type.add(name="Settings")
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(proto.SerializeToString())
    proto.name = "other.proto"
    with pytest.raises(TypeError, match="duplicate"):
        pool.AddSerializedFile(proto.SerializeToString())


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(KeyError):
        messages.message_type("Nothing")
