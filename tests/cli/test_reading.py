# SPDX-License-Identifier: Apache-2.0
"""The options that `txrocketmq tail` and `consume` share."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from tests.zones import in_zone
from txrocketmq.cli.reading import add_reading_options, parse_start


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_reading_options(parser, "where to begin")
    return parser.parse_args(arguments)


@pytest.fixture
def _zone() -> Iterator[None]:
    with in_zone("UTC-2"):
        yield


@pytest.mark.usefixtures("_zone")
@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("first", "first"),
        ("last", "last"),
        ("1795248930123", 1_795_248_930_123),
        ("20261121101530", 1_795_248_930_000),
        ("2026-11-21T10:15:30", 1_795_248_930_000),
        ("2026-11-21T08:15:30Z", 1_795_248_930_000),
        ("2026-11-21 10:15:30.123", 1_795_248_930_123),
    ],
)
def test_starts(text: str, start: object) -> None:
    assert parse_start(text) == start


@pytest.mark.parametrize(
    "text", ["", "now", "17952489301234567", "20261321101530", "2026-11-41", "0001-01-01"]
)
def test_what_is_no_start(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="neither first, last nor a time"):
        parse_start(text)


def test_an_expression_without_a_tag(capsys: pytest.CaptureFixture[str]) -> None:
    assert parsed("--tag", "a || b").tag == "a || b"
    with pytest.raises(SystemExit):
        parsed("--tag", "||")
    assert "'||' does not name a tag" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--count", "--timeout"])
def test_wrong_usage(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed(flag, "0")
    assert ended.value.code == 2
    assert "'0' is not a whole number of at least 1" in capsys.readouterr().err
