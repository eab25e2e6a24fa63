# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.conftest import Parts
from tests.fakes import NOW_MS, refused, request
from txrocketmq.broker.processors.admin.admin_config import AdminConfigProcessor
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC
from txrocketmq.remoting.protocol.body.route import DataVersion
from txrocketmq.remoting.settings.config_file import Configuration, read_file, read_properties

FILE = "# mine\nbrokerName=b\n\nsendMessageThreadPoolNums = 4\n"

IN_TWENTY_YEARS_MS = NOW_MS + 20 * 365 * 86_400_000
"""Of a file's age, what counts is when it was written, by the clock of the machine."""


class Admin(AdminConfigProcessor):
    """With what it was given."""

    def __init__(self, parts: Parts) -> None:
        self.path = parts.folder / "broker.conf"
        self.path.write_text(FILE)
        self.parts = parts
        parts.set(broker_config_path=str(self.path))
        self.configuration = Configuration((parts.config, parts.store.config), read_file(self.path))
        super().__init__(
            parts.config,
            self.configuration,
            parts.topics,
            parts.store,
            parts.walks,
            parts.now_ms,
        )

    def update(self, text: str) -> str | None:
        got = request(NoHeader(), text.encode(), now_ms=self.parts.now_ms)
        return self.update_config(got).remark

    def settings(self) -> tuple[dict[str, str], DataVersion]:
        reply = self.get_config(request(NoHeader()))
        assert reply.header is not None
        version = DataVersion.decode(reply.header.version.encode())
        return read_properties(reply.body_bytes.decode()), version


@pytest.fixture
def admin(parts: Parts) -> Admin:
    return Admin(parts)


def test_all_settings_are_shown(parts: Parts, admin: Admin) -> None:
    shown, version = admin.settings()
    assert shown["brokerClusterName"] == "DefaultCluster"
    assert shown["storePathRootDir"] == parts.store.config.store_path_root_dir
    assert shown["sendMessageThreadPoolNums"] == "4"
    assert list(shown) == sorted(shown)
    assert version == DataVersion(timestamp=parts.now_ms)


def test_live_settings_count_at_once(parts: Parts, admin: Admin) -> None:
    held = parts.config
    admin.update("longPollingEnable=false\nmaxMessageSize=100\n")
    assert held.long_polling_enable is False
    assert parts.store.config.max_message_size == 100
    shown, version = admin.settings()
    assert (shown["longPollingEnable"], shown["maxMessageSize"]) == ("false", "100")
    assert version.counter == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("brokerName=other", "brokerName cannot change while the server runs: set it in the"),
        ("maxMessageSize=0", "maxMessageSize must be at least 1, not 0"),
        ("maxMessageSize=99999999999", "maxMessageSize must be at most 2147483647, not 99999"),
        ("brokerPermission=99", "brokerPermission must be at most 7, not 99"),
        ("namesrvAddr=;;;", "namesrvAddr must be addresses like 127.0.0.1:9876;192"),
        ("useSeparateRetryQueue=true", "a queue of retry topics for each queue is not served"),
    ],
)
def test_what_would_not_change_is_refused(parts: Parts, admin: Admin, text: str, why: str) -> None:
    with refused(ResponseCode.SYSTEM_ERROR, why):
        admin.update(f"longPollingEnable=false\n{text}\n")
    assert parts.config.long_polling_enable is True
    assert admin.path.read_text() == FILE
    assert admin.settings()[1].counter == 0


def test_what_has_no_effect_is_taken_as_at_a_start(parts: Parts, admin: Admin) -> None:
    heard: list[list[str]] = []
    admin.configuration.on_change.append(lambda keys: heard.append(list(keys)))
    remark = admin.update("enableSingleTopicRegister=true\nrocketmqHom=/x\ntraceOn=false\n")
    assert remark is not None
    assert remark.startswith("unknown key rocketmqHom")
    assert remark.endswith("; enableSingleTopicRegister has no effect here")
    assert admin.settings()[0]["enableSingleTopicRegister"] == "true"
    assert admin.path.read_text() == FILE + "enableSingleTopicRegister=true\ntraceOn=false\n"
    assert heard == [["enableSingleTopicRegister", "traceOn"]]
    admin.update("disableConsumeIfConsumerReadSlowly=false\n")
    assert heard[1:] == [], "it is so already"


def test_a_key_that_nobody_knows_is_passed_over(parts: Parts, admin: Admin) -> None:
    remark = admin.update("longPolingEnable=false\n")
    assert remark == "unknown key longPolingEnable (did you mean longPollingEnable?)"
    assert admin.path.read_text() == FILE
    assert admin.settings()[1].counter == 0


def test_settings_that_are_so_already_are_taken(admin: Admin) -> None:
    admin.update("brokerName=DEFAULT_BROKER\nsendMessageThreadPoolNums=4\n")
    assert admin.path.read_text() == FILE
    assert admin.settings()[1].counter == 0


def test_changes_are_written_to_the_file(admin: Admin) -> None:
    admin.path.chmod(0o640)
    admin.update("longPollingEnable=false\n")
    assert admin.path.read_text() == FILE + "longPollingEnable=false\n"
    assert admin.path.stat().st_mode & 0o777 == 0o640
    assert (admin.path.parent / "broker.conf.bak").read_text() == FILE
    assert sorted(path.name for path in admin.path.parent.glob("broker.conf*")) == [
        "broker.conf",
        "broker.conf.bak",
    ]


def test_a_link_to_the_file_stays_one(parts: Parts, admin: Admin) -> None:
    link = admin.path.with_name("linked.conf")
    link.symlink_to(admin.path)
    parts.set(broker_config_path=str(link))
    admin.update("longPollingEnable=false\n")
    assert link.is_symlink()
    assert admin.path.read_text() == FILE + "longPollingEnable=false\n"


def test_without_a_file_changes_hold_until_the_end(parts: Parts, admin: Admin) -> None:
    parts.set(broker_config_path="")
    admin.update("longPollingEnable=false\n")
    assert parts.config.long_polling_enable is False
    assert admin.path.read_text() == FILE


def test_a_file_that_cannot_be_written_is_told(parts: Parts, admin: Admin) -> None:
    parts.set(broker_config_path=str(Path(admin.path.parent, "none", "broker.conf")))
    with refused(ResponseCode.SYSTEM_ERROR, "changed until the next start, but not in"):
        admin.update("longPollingEnable=false\nmaxMessageSize=100\n")
    assert parts.config.long_polling_enable is False
    assert parts.store.config.max_message_size == 100


@pytest.mark.parametrize("key", ["brokerConfigPath", "configBlackList", "rocketmqHome", "mine"])
def test_keys_of_the_black_list(parts: Parts, admin: Admin, key: str) -> None:
    parts.set(config_black_list="configBlackList;mine")
    with refused(ResponseCode.NO_PERMISSION, "Can not update config in black list."):
        admin.update(f"longPollingEnable=false\n{key}=x\n")
    assert parts.config.long_polling_enable is True


@pytest.mark.parametrize(
    "text", ["brokerPermission=x", "flushDiskType=NEVER", "namesrvAddr=x", "a=\\u12"]
)
def test_values_that_cannot_be_change_nothing(parts: Parts, admin: Admin, text: str) -> None:
    with refused(ResponseCode.SYSTEM_ERROR):
        admin.update(f"longPollingEnable=false\n{text}\n")
    assert parts.config.long_polling_enable is True
    assert admin.path.read_text() == FILE


def test_topics_without_configuration_are_cleaned(parts: Parts, admin: Admin) -> None:
    parts.topic("T")
    for topic in ("T", "gone", "%LMQ%light", SCHEDULE_TOPIC, "rmq_sys_x"):
        parts.put(topic, 0)
    admin.clean_topics(request(NoHeader()))
    assert set(parts.store.topics()) == {"T", "%LMQ%light", SCHEDULE_TOPIC, "rmq_sys_x"}


def test_nothing_is_cleaned_that_is_needed(parts: Parts, admin: Admin) -> None:
    put = parts.put("T")
    admin.clean_queues(request(NoHeader()))
    admin.clean_log(request(NoHeader(), now_ms=IN_TWENTY_YEARS_MS))
    assert parts.store.topics() == ["T"]
    assert parts.store.message_at(put.physical_offset) is not None


def test_old_log_files_and_their_queues_are_cleaned(parts: Parts, admin: Admin) -> None:
    parts.put("T", body=bytes(40_000))
    parts.put(SCHEDULE_TOPIC, 0, body=bytes(40_000))
    parts.put("U", body=bytes(40_000))
    assert parts.store.max_physical_offset > 2 * 65_536
    parts.store.flush.flush_all()
    admin.clean_log(request(NoHeader(), now_ms=IN_TWENTY_YEARS_MS))
    assert parts.store.min_physical_offset == 65_536
    admin.clean_queues(request(NoHeader()))
    assert set(parts.store.topics()) == {SCHEDULE_TOPIC, "U"}


def test_no_secret_is_shown_or_overwritten_by_what_is_shown(parts: Parts, admin: Admin) -> None:
    """Everybody who reaches the port may ask for the settings."""
    proxy = '{"0.0.0.0/0":{"addr":"a:1","username":"u","password":"hunter2"}}'
    assert admin.update(f"socksProxyConfig={proxy}") == "socksProxyConfig has no effect here"
    shown, version = admin.settings()
    assert shown["socksProxyConfig"] == "***"
    assert "hunter2" not in str(shown)
    assert admin.update("socksProxyConfig=***\nsplitMetadataSize=7") is None
    assert read_file(admin.path)["socksProxyConfig"] == proxy
    assert admin.settings()[1].counter == version.counter + 1
    assert admin.configuration.properties["socksProxyConfig"] == proxy


@pytest.mark.parametrize("key", ["regionId", "sendMessageThreadPoolNums"])
def test_control_characters_are_refused(parts: Parts, admin: Admin, key: str) -> None:
    """The region becomes a property of each message; these would add others, such as TAGS."""
    before = admin.settings()
    with refused(ResponseCode.SYSTEM_ERROR, f"{key} contains the control character U"):
        admin.update(f"splitMetadataSize=7\n{key}=R\\u0002TAGS\\u0001evil")
    assert admin.settings() == before
    assert admin.path.read_text() == FILE
