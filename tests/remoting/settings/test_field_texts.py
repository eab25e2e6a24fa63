# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import dataclass

from txrocketmq.remoting.settings.field_texts import field_texts


@dataclass
class Base:
    """Settings of all."""

    size: int = 3
    """How large it is,
    in bytes on the wire."""
    name: str = ""


@dataclass
class Own(Base):
    """Settings of its own."""

    color: str = "red"
    """Its colour."""

    def method(self) -> None:
        """Is no text of a field."""


def test_the_text_below_a_field_is_its_own() -> None:
    assert field_texts(Own) == {
        "size": "How large it is, in bytes on the wire.",
        "color": "Its colour.",
    }


def test_without_a_source_there_are_no_texts() -> None:
    assert field_texts(type("Made", (), {"size": 3})) == {}
