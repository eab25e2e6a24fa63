# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import dataclass, fields

from txrocketmq.spark.options import option_values as values
from txrocketmq.spark.options.option import USE_NAMES, Option, Use, option


@dataclass(frozen=True)
class Some:
    flag: bool = option("flag", default=True, uses=Use.SINK)
    secret: str | None = option("secret", None, Use.LIVE, is_secret=True)
    count: int = option("count", 3, Use.LIVE, values.whole(1), shown="three")


def test_a_declaration_goes_with_the_field() -> None:
    found = {each.name: each.metadata["option"] for each in fields(Some)}
    assert found["flag"] == Option("flag", Use.SINK, values.boolean, "true")
    assert found["secret"].parse is values.text
    assert found["secret"].shown_default == ""
    assert found["count"].shown_default == "three"
    assert Some().count == 3


def test_a_secret_is_not_shown() -> None:
    assert "hush" not in repr(Some(secret="hush"))  # noqa: S106 - made up


def test_every_use_has_a_name() -> None:
    assert set(USE_NAMES) == set(Use)
