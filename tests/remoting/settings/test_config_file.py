# SPDX-License-Identifier: Apache-2.0
"""Properties text and configuration dataclasses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.settings.config_file import (
    ConfigError,
    Configuration,
    as_properties,
    ignored_keys,
    load,
    load_all,
    original_keys,
    read_file,
    read_properties,
    setting,
    write_properties,
)


@dataclass(frozen=True)
class Config:
    IGNORED: ClassVar[Mapping[str, str | None]] = original_keys(
        "useEpollNativeSelector=false proxy"
    )

    listen_port: int = setting(9876)
    order_message_enable: bool = setting(False, live=True)
    ratio: float = setting(0.5, live=True)
    broker_ip1: str = setting("", java="brokerIP1")


@dataclass(frozen=True, slots=True)
class Other:
    threads: int = setting(8, effect=False)
    name: str | None = setting(None)
    home: str = setting(lambda: "/home/me")
    black_list: tuple[str, ...] = setting((), live=True)
    derived: int = field(default=0, init=False)


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
        ("listenPort", "x", "listenPort must be a whole number, not 'x'"),
        ("listenPort", "1_0", "listenPort must be a whole number, not '1_0'"),
        ("listenPort", "\u0663", "listenPort must be a whole number"),
        ("orderMessageEnable", "yes", "orderMessageEnable must be true or false, not 'yes'"),
        ("ratio", "", "ratio must be a number, not ''"),
    ],
)
def test_wrong_values_are_named(key: str, value: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        load(Config, {key: value})


def test_as_properties_uses_the_original_keys() -> None:
    assert as_properties(Config()) == {
        "listenPort": "9876", "orderMessageEnable": "false", "ratio": "0.5", "brokerIP1": "",
    }  # fmt: skip


def test_continued_lines_comments_and_line_ends() -> None:
    text = "a = 1\\\r\n  # no comment here\r\n# c \\\r\nb=2\rc=\\\\\nd=3\\"
    assert read_properties(text) == {"a": "1# no comment here", "b": "2", "c": "\\", "d": "3"}


def test_escapes_in_keys_and_values() -> None:
    assert read_properties(r"a\ b\=c : \ x\q\ud83d\ude00\n") == {"a b=c": " xq\U0001f600\n"}
    assert read_properties("k=a=b:c d") == {"k": "a=b:c d"}


def test_a_broken_unicode_escape_is_an_error() -> None:
    with pytest.raises(ConfigError, match="4 hex digits"):
        read_properties("a=\\u12")


def test_written_text_is_latin_1_for_java() -> None:
    assert write_properties({"k": "\u00fc \U0001f600"}) == "k=\\u00fc \\ud83d\\ude00\n"


texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(texts.filter(bool), texts))
def test_any_properties_are_read_back(values: dict[str, str]) -> None:
    assert read_properties(write_properties(values)) == values


@given(texts)
def test_any_text_is_read_or_refused_clearly(text: str) -> None:
    try:
        read_properties(text)
    except ConfigError as error:
        assert "hex digits" in str(error)


def test_read_file_says_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    with pytest.raises(ConfigError, match="cannot read .*a.conf: No such file"):
        read_file(path)
    path.write_bytes(b"a=\xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_file(path)
    path.write_bytes(b"a=\\uxyz")
    with pytest.raises(ConfigError, match="a.conf: .*hex digits"):
        read_file(path)
    path.write_text("a = \u00fc\n", "utf-8")
    assert read_file(path) == {"a": "\u00fc"}


def test_load_all_fills_several_classes_from_one_file() -> None:
    values = {"listenPort": "1", "threads": " 2 ", "blackList": "a; b;", "name": " x "}
    (config, other), unknown = load_all((Config, Other), values)
    assert (config, other) == (
        Config(listen_port=1), Other(threads=2, name="x", black_list=("a", "b")),
    )  # fmt: skip
    assert unknown == []
    assert ignored_keys(Other, values) == ["threads"]


def test_unset_settings_are_no_properties() -> None:
    assert as_properties(Other(black_list=("a", "b"))) == {
        "threads": "8", "home": "/home/me", "blackList": "a;b",
    }  # fmt: skip


def test_nothing_resembles_a_strange_key() -> None:
    assert [str(key) for key in load(Config, {"qqqqqq": "1"})[1]] == ["unknown key qqqqqq"]


def test_a_configuration_changes_live_settings_and_tells_what_they_were() -> None:
    configuration = Configuration([Config(), Other()], {"unknownKey": "7"})
    unchanged = {"listenPort": " +9876", "unknownKey": "7"}
    assert configuration.update({"ratio": "1", **unchanged}) == ["ratio"]
    assert configuration.get(Config) == Config(ratio=1.0)
    assert configuration.properties["ratio"] == "1"
    assert configuration.update({"ratio": "1.0"}) == []


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("listenPort", "listenPort cannot change while the server runs: set it in the"),
        ("unknownKey", "unknown key unknownKey"),
        ("listenPrt", "unknown key listenPrt (did you mean listenPort?)"),
    ],
)
def test_what_cannot_change_is_told_and_changes_nothing(key: str, why: str) -> None:
    configuration = Configuration([Config(), Other()], {"unknownKey": "7"})
    with pytest.raises(ConfigError) as error:
        configuration.update({"ratio": "1", key: "5"})
    assert str(error.value).startswith(why)
    assert configuration.get(Config) == Config()
    assert configuration.update({key: "5"}, at_start=True) == [key]


def test_whoever_holds_a_part_sees_it_change_and_listeners_hear_which_keys() -> None:
    part = Config()
    configuration = Configuration([part, Other()], {})
    heard: list[list[str]] = []
    configuration.on_change.append(lambda keys: heard.append(sorted(keys)))
    configuration.on_change.append(lambda keys: heard.append(sorted(keys)))
    configuration.update({"ratio": "1", "listenPort": "9876"})
    assert part == Config(ratio=1.0)
    assert heard == [["ratio"]] * 2
    configuration.update({"ratio": "1"})
    assert heard == [["ratio"]] * 2
    configuration.update({"listenPort": "5"}, at_start=True)
    assert part.listen_port == 5
    assert configuration.get(Config) is part


def test_a_configuration_changes_all_or_nothing() -> None:
    configuration = Configuration([Config()], {})
    with pytest.raises(ConfigError, match="listenPort must be a whole number"):
        configuration.update({"ratio": "1", "listenPort": "x"})
    assert configuration.get(Config) == Config()
    assert configuration.properties["ratio"] == "0.5"


def test_the_originals_keys_are_shown_with_their_defaults() -> None:
    configuration = Configuration([Config(), Other()], {})
    assert configuration.properties["useEpollNativeSelector"] == "false"
    assert "proxy" not in configuration.properties
    assert configuration.update({"useEpollNativeSelector": "false"}) == []
    assert configuration.update({"useEpollNativeSelector": "true"}) == ["useEpollNativeSelector"]
    assert configuration.properties["useEpollNativeSelector"] == "true"
    assert configuration.without_effect(["ratio", "useEpollNativeSelector"]) == [
        "useEpollNativeSelector"
    ]
    given = Configuration([Config(), Other()], {"useEpollNativeSelector": "true"})
    assert given.properties["useEpollNativeSelector"] == "true"


def test_keys_that_nobody_knows_can_be_told() -> None:
    unknown = Configuration([Config(), Other()], {}).unknown(["listenPrt", "ratio", "proxy"])
    assert [str(each) for each in unknown] == ["unknown key listenPrt (did you mean listenPort?)"]


def test_the_text_of_all_settings_is_made_when_they_change() -> None:
    configuration = Configuration([Config(), Other()], {})
    first = configuration.text
    assert read_properties(first) == configuration.properties
    assert configuration.text is first
    configuration.update({"ratio": "0.7"})
    assert read_properties(configuration.text) == configuration.properties
    assert "ratio=0.7" in configuration.text


def test_control_characters_are_refused_everywhere() -> None:
    why = "contains the control character U+0002: write it without such characters"
    for values in ({"name": "a\x02b"}, {"nobodyKnows": "a\x02b"}, {"proxy\x02": "1"}):
        with pytest.raises(ConfigError, match=re.escape(why)):
            load(Config, values)
        with pytest.raises(ConfigError, match=re.escape(why)):
            Configuration([Config()], {}).update(values)


def test_secrets_are_kept_and_not_shown() -> None:
    configuration = Configuration([Config()], {"keyPassword": "hunter2", "other": "7"})
    assert configuration.properties["keyPassword"] == "hunter2"
    assert configuration.shown["keyPassword"] == "***"
    text = read_properties(configuration.text)
    assert (text["keyPassword"], text["other"]) == ("***", "7")
