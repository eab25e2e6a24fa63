# SPDX-License-Identifier: Apache-2.0
"""Key-values and settings as administrators change them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes import refused
from tests.namesrv.conftest import MakeNames, Names
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol import route
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.route import (
    DeleteKVConfigRequestHeader,
    GetKVConfigRequestHeader,
    GetKVListByNamespaceRequestHeader,
    PutKVConfigRequestHeader,
)
from txrocketmq.remoting.settings.config_file import read_properties


def put(names: Names, key: str, value: str) -> None:
    names.ask(route.PUT_KV_CONFIG, PutKVConfigRequestHeader(namespace="ns", key=key, value=value))


def update(names: Names, body: bytes) -> None:
    names.ask(admin.UPDATE_NAMESRV_CONFIG, NoHeader(), body)


def shown(names: Names) -> dict[str, str]:
    return read_properties(names.ask(admin.GET_NAMESRV_CONFIG, NoHeader()).body.decode())


def test_key_values(names: Names) -> None:
    put(names, "k", "v")
    header = GetKVConfigRequestHeader(namespace="ns", key="k")
    assert names.ask(route.GET_KV_CONFIG, header).header.value == "v"
    listing = GetKVListByNamespaceRequestHeader(namespace="ns")
    assert names.ask(route.GET_KVLIST_BY_NAMESPACE, listing).body == b'{"table":{"k":"v"}}'
    names.ask(route.DELETE_KV_CONFIG, DeleteKVConfigRequestHeader(namespace="ns", key="k"))
    with refused(ResponseCode.QUERY_NOT_FOUND, "No config item, Namespace: ns Key: k"):
        names.ask(route.GET_KV_CONFIG, header)
    assert names.ask(route.GET_KVLIST_BY_NAMESPACE, listing).body == b'{"table":{}}'
    assert names.notes == ["127.0.0.1:50000 set k of ns", "127.0.0.1:50000 deleted k of ns"]


def test_a_namespace_that_is_not_there(names: Names) -> None:
    with refused(ResponseCode.QUERY_NOT_FOUND, "No config item, Namespace: ns"):
        names.ask(route.GET_KVLIST_BY_NAMESPACE, GetKVListByNamespaceRequestHeader(namespace="ns"))


def test_a_file_that_cannot_be_written(names: Names) -> None:
    put(names, "k", "v")
    names.kv.path.with_name("kvConfig.json.tmp").mkdir()
    with refused(ResponseCode.SYSTEM_ERROR, f"cannot write {names.kv.path}"):
        put(names, "k", "w")
    with refused(ResponseCode.SYSTEM_ERROR, f"cannot write {names.kv.path}"):
        names.ask(route.DELETE_KV_CONFIG, DeleteKVConfigRequestHeader(namespace="ns", key="k"))
    assert names.kv.get("ns", "k") == "v"
    assert len(names.notes) == 1


def test_settings_are_shown_in_order(names: Names) -> None:
    values = shown(names)
    assert list(values) == sorted(values)
    assert values["orderMessageEnable"] == "false"


def test_a_live_setting_changes_and_is_written(names: Names, tmp_path: Path) -> None:
    update(names, b"orderMessageEnable=true\nlistenPort=9876\n")
    assert names.configuration.get(NamesrvConfig).order_message_enable
    assert shown(names)["orderMessageEnable"] == "true"
    written = (tmp_path / "namesrv.properties").read_text("utf-8")
    assert written == "orderMessageEnable=true\n"
    assert names.notes == ["127.0.0.1:50000 changed orderMessageEnable"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"listenPort=9999", "listenPort cannot change while the server runs"),
        (b"waitSecondsForService=99999999999", "waitSecondsForService must be at most 2147483647"),
        (b"enableControllerInNamesrv=true", "a controller is not served"),
    ],
)
def test_what_would_not_change_is_refused(
    names: Names, tmp_path: Path, text: bytes, why: str
) -> None:
    before = shown(names)
    with refused(ResponseCode.SYSTEM_ERROR, why):
        update(names, b"orderMessageEnable=true\n" + text)
    assert shown(names) == before
    assert not (tmp_path / "namesrv.properties").exists()


def test_what_has_no_effect_is_taken_as_at_a_start(names: Names, tmp_path: Path) -> None:
    update(names, b"productEnvName=far\nscanAvailableNameSrv=false\norderMessageEnable=true\n")
    assert names.configuration.get(NamesrvConfig).product_env_name == "far"
    assert shown(names)["productEnvName"] == "far"
    assert shown(names)["scanAvailableNameSrv"] == "false"
    assert "productEnvName=far\n" in (tmp_path / "namesrv.properties").read_text("utf-8")
    (note,) = names.notes
    assert "productEnvName (without effect here)" in note
    assert note.endswith("orderMessageEnable")


def test_the_file_keeps_comments_order_and_mode(names: Names, tmp_path: Path) -> None:
    path = tmp_path / "namesrv.properties"
    path.write_text("# ours\nserverWorkerThreads = 4\norderMessageEnable : false\n")
    path.chmod(0o600)
    update(names, b"orderMessageEnable=true\n")
    assert path.read_text() == "# ours\nserverWorkerThreads = 4\norderMessageEnable=true\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_key_that_nobody_knows_is_passed_over(names: Names, tmp_path: Path) -> None:
    before = shown(names)
    update(names, b"nobodyKnows=1\n")
    assert shown(names) == before
    assert not (tmp_path / "namesrv.properties").exists()


@pytest.mark.parametrize(
    "body",
    [
        b"kvConfigPath=/x",
        b"orderMessageEnable=true\nconfigStorePath=/x",
        b"configBlackList=",
        b"rocketmqHome=/x",
        b"listenPort=1",
    ],
)
def test_settings_of_the_black_list_are_refused(make_names: MakeNames, body: bytes) -> None:
    names = make_names(configBlackList="listenPort;bindAddress")
    before = shown(names)
    with refused(ResponseCode.NO_PERMISSION, "Can not update config in black list."):
        update(names, body)
    assert shown(names) == before


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"orderMessageEnable=yes", "orderMessageEnable must be true or false, not 'yes'"),
        (b"waitSecondsForService=x", "waitSecondsForService must be a whole number, not 'x'"),
        (b"productEnvName=\\u12", "must be followed by 4 hex digits"),
    ],
)
def test_values_that_cannot_be_are_refused(names: Names, body: bytes, why: str) -> None:
    before = shown(names)
    with refused(ResponseCode.SYSTEM_ERROR, why):
        update(names, body)
    assert shown(names) == before


def test_settings_that_cannot_be_written_are_told(names: Names, tmp_path: Path) -> None:
    (tmp_path / "namesrv.properties.tmp").mkdir()
    with refused(ResponseCode.SYSTEM_ERROR, "changed until the next start: cannot write"):
        update(names, b"orderMessageEnable=true")
    assert names.configuration.get(NamesrvConfig).order_message_enable


def test_an_update_without_settings(names: Names) -> None:
    update(names, b"")
    assert names.notes == ["127.0.0.1:50000 changed no setting"]
