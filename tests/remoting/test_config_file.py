# SPDX-License-Identifier: Apache-2.0
"""Properties text and configuration dataclasses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from txrocketmq.remoting.config_file import (
    ConfigError,
    as_properties,
    ignored_keys,
    load,
    read_properties,
    setting,
    updated,
    write_properties,
)


@dataclass(frozen=True)
class Config:
    IGNORED: ClassVar[frozenset[str]] = frozenset({"useEpollNativeSelector"})

    listen_port: int = setting(9876)
    order_message_enable: bool = setting(False, live=True)
    ratio: float = setting(0.5, live=True)
    broker_ip1: str = setting("", java="brokerIP1")


def test_reads_what_java_reads() -> None:
    text = "# c\n! c\n a = 1\nb:2\nc 3\nd=x\\\n   y\n=no\ne=\\u0041\\t.\nf\na=last\n"
    assert read_properties(text) == {
        "a": "last", "b": "2", "c": "3", "d": "xy", "e": "A\t.", "f": "",
    }  # fmt: skip


def test_written_text_is_read_back() -> None:
    values = {"namesrvAddr": "127.0.0.1:9876;127.0.0.1:9877", "x": ""}
    assert read_properties(write_properties(values)) == values


def test_load_fills_fields_and_names_what_it_does_not_know() -> None:
    config, unknown = load(
        Config,
        {"listenPort": "1", "brokerIP1": "h", "listenPrt": "2", "useEpollNativeSelector": "true"},
    )
    assert config == Config(listen_port=1, broker_ip1="h")
    assert [str(key) for key in unknown] == ["unknown key listenPrt (did you mean listenPort?)"]
    assert ignored_keys(Config, {"useEpollNativeSelector": "1", "x": "2"}) == [
        "useEpollNativeSelector"
    ]


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("listenPort", "x", "listenPort is a whole number, not 'x'"),
        ("orderMessageEnable", "yes", "orderMessageEnable is true or false, not 'yes'"),
        ("ratio", "", "ratio is a number, not ''"),
    ],
)
def test_wrong_values_are_named(key: str, value: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        load(Config, {key: value})


def test_only_live_settings_change() -> None:
    config = updated(Config(), {"listenPort": "1", "ratio": "0.75", "orderMessageEnable": "TRUE"})
    assert config == Config(ratio=0.75, order_message_enable=True)


def test_as_properties_uses_the_original_keys() -> None:
    assert as_properties(Config()) == {
        "listenPort": "9876", "orderMessageEnable": "false", "ratio": "0.5", "brokerIP1": "",
    }  # fmt: skip
