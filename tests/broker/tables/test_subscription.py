# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.conftest import Parts
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.tables.attributes import AttributeChangeError
from txrocketmq.broker.tables.subscription import SYSTEM_GROUPS, SubscriptionGroups, is_system_group
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig
from txrocketmq.remoting.serialize.json import encode_pretty


def groups_of(folder: Path, **settings: object) -> SubscriptionGroups:
    return SubscriptionGroups(
        BrokerConfig(**settings),  # type: ignore[arg-type]
        JsonFile(folder / "groups.json"),
        lambda: 1000,
    )


def test_system_groups_exist_and_may_broadcast(parts: Parts) -> None:
    assert set(parts.groups.all()) == set(SYSTEM_GROUPS)
    assert all(group.consume_broadcast_enable for group in parts.groups.all().values())
    assert is_system_group("CID_RMQ_SYS_anything")
    assert not is_system_group("mine")


def test_a_group_is_made_when_it_is_looked_for(parts: Parts) -> None:
    told: list[str] = []
    parts.groups.on_change.append(told.append)
    assert parts.groups.get("g") is None
    made = parts.groups.find("g")
    assert made is not None
    assert (made.retry_queue_nums, made.retry_max_times, made.consume_enable) == (1, 16, True)
    assert parts.groups.find("g") is parts.groups.get("g")
    assert told == ["g"]


def test_no_group_is_made_where_that_is_off_or_the_name_is_bad(tmp_path: Path) -> None:
    groups = groups_of(tmp_path, auto_create_subscription_group=False)
    assert groups.find("g") is None
    assert groups.find("CID_RMQ_SYS_x") is not None
    assert groups_of(tmp_path).find("bad name") is None
    none = groups_of(tmp_path, auto_create_subscription_group=False, enable_create_sys_group=False)
    assert none.find("CID_RMQ_SYS_x") is None


def test_an_update_changes_attributes(parts: Parts) -> None:
    def update(**changes: str) -> None:
        signed = {name.replace("add_", "+").replace("_", "."): v for name, v in changes.items()}
        parts.groups.update(SubscriptionGroupConfig(group_name="g", attributes=signed))

    update(add_priority_factor="100")
    made = parts.groups.get("g")
    assert made is not None
    assert made.attributes == {"priority.factor": "100"}
    with pytest.raises(AttributeChangeError):
        update(add_nonsense="1")
    assert parts.groups.get("g") is made


def test_a_deleted_group_is_gone_with_what_was_forbidden(parts: Parts) -> None:
    parts.groups.find("g")
    parts.groups.set_readable("g", "T", readable=False)
    assert parts.groups.delete("g")
    assert parts.groups.get("g") is None
    assert not parts.groups.is_read_forbidden("g", "T")
    assert not parts.groups.delete("g")


def test_reading_a_topic_is_forbidden_and_allowed(parts: Parts) -> None:
    parts.groups.set_readable("g", "T", readable=False)
    parts.groups.set_readable("g", "U", readable=False)
    assert parts.groups.is_read_forbidden("g", "T")
    assert not parts.groups.is_read_forbidden("h", "T")
    assert parts.groups.forbidden() == {"g": {"T": 4, "U": 4}}
    parts.groups.set_readable("g", "T", readable=True)
    assert parts.groups.forbidden() == {"g": {"U": 4}}
    parts.groups.set_readable("g", "U", readable=True)
    assert parts.groups.forbidden() == {}


def test_groups_survive(tmp_path: Path) -> None:
    first = groups_of(tmp_path)
    first.find("g")
    first.set_readable("g", "T", readable=False)
    later = groups_of(tmp_path)
    later.load()
    assert later.all() == first.all()
    assert later.is_read_forbidden("g", "T")
    assert later.data_version == first.data_version


def test_the_file_is_what_the_original_reads(tmp_path: Path) -> None:
    groups = groups_of(tmp_path)
    groups.find("g")
    groups.saving.begin()
    text = (tmp_path / "groups.json").read_bytes()
    content = json.loads(text)
    assert encode_pretty(content) == text
    group = content["subscriptionGroupTable"]["g"]
    assert group["groupRetryPolicy"] == {"type": "CUSTOMIZED"}
    assert group["groupName"] == "g"
    assert content["forbiddenTable"] == {}


def test_retry_policies_are_kept(tmp_path: Path) -> None:
    groups = groups_of(tmp_path)
    policies = (
        {"type": "EXPONENTIAL",
         "exponentialRetryPolicy": {"initial": 600, "max": 7200, "multiplier": 3}},
        {"type": "CUSTOMIZED", "customizedRetryPolicy": {"next": [1000, 2000]}},
    )  # fmt: skip
    for number, policy in enumerate(policies):
        config = {"groupName": f"g{number}", "groupRetryPolicy": policy}
        groups.update(SubscriptionGroupConfig.from_json(config))
    later = groups_of(tmp_path)
    later.load()
    kept = [later.all()[f"g{number}"].to_json()["groupRetryPolicy"] for number in range(2)]
    assert kept == list(policies)


def test_the_original_s_file_is_read(
    golden_store: Callable[[str], Path], golden_version: str
) -> None:
    path = golden_store(golden_version) / "clean" / "config" / "subscriptionGroup.json"
    groups = SubscriptionGroups(BrokerConfig(), JsonFile(path), lambda: 0)
    groups.load()
    assert groups.get("golden_retry") is not None


def test_each_light_name_is_a_group_where_light_queues_are_served(tmp_path: Path) -> None:
    file = JsonFile(tmp_path / "groups.json")
    config = BrokerConfig(auto_create_subscription_group=False)
    groups = SubscriptionGroups(config, file, lambda: 0, has_light_queues=True)
    for found in (groups.get("%LMQ%g"), groups.find("%LMQ%g")):
        assert found is not None
        assert found.group_name == "%LMQ%g"
    assert "%LMQ%g" not in groups.all()
    assert groups.find("g") is None
    assert groups_of(tmp_path, auto_create_subscription_group=False).find("%LMQ%g") is None


def test_no_more_groups_than_the_limit_by_themselves(parts: Parts) -> None:
    groups = parts.groups
    parts.set(auto_create_limit=groups.count + 1)
    assert groups.expected("g") is not None
    assert groups.get("g") is None
    assert groups.find("g") is groups.get("g") is not None
    assert groups.expected("h") is groups.find("h") is None
    assert "autoCreateLimit" in groups.why_full
    groups.update(SubscriptionGroupConfig(group_name="h"))
    assert groups.find("h") is not None, "administrators can"
