# SPDX-License-Identifier: Apache-2.0
"""Decisions against those of the original's jar, but where ours are stricter."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.access.acl.test_address_patterns import GOLDEN
from txrocketmq.access.acl.files import AclFiles, file_of, together
from txrocketmq.access.acl.plain_acl import EXCEPTION, PlainAcl
from txrocketmq.access.acl.plain_needs import PLAIN_NEEDS
from txrocketmq.access.acl.yaml_file import loaded
from txrocketmq.access.needs import Action, need_of_topic
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.credentials import signature

LINES = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
(YML,) = [line["yml"] for line in LINES if "yml" in line]
REQUESTS = [line for line in LINES if "code" in line]
SECRETS = {"admin-all": "12345678", "reader-key": "secret-6", "writer-key": "secret-5"}
HOST = "10.7.7.7"


def acl_of(yml: str) -> PlainAcl:
    acl = PlainAcl()
    acl.hold(files_of(yml))
    return acl


def files_of(yml: str) -> AclFiles:
    return together([file_of("plain_acl.yml", (0, 0, 0, 0), loaded("x", yml.encode()))])


def command(line: dict[str, Any]) -> RemotingCommand:
    body = (line.get("body") or "").encode()
    return RemotingCommand(line["code"], line.get("fields"), body, version=401)


def signed(
    key: str, code: int, body: bytes = b"", version: int = 401, **fields: str
) -> RemotingCommand:
    fields["AccessKey"] = key
    fields["Signature"] = signature(fields, body, SECRETS[key])
    return RemotingCommand(code, fields, body, version=version)


def _is_stricter(line: dict[str, Any]) -> bool:
    """Where the original lets in everybody with an account, or asks for the sender's group."""
    needs = PLAIN_NEEDS.get(line["code"])
    only_for_admins = (
        needs is not None and needs.is_admin and line["code"] not in (17, 25, 200, 207, 215)
    )
    is_to_retry = line["code"] in (10, 310) and any(
        line["fields"].get(name, "").startswith("%RETRY%") for name in ("topic", "b")
    )
    return only_for_admins or is_to_retry


def test_each_request_is_refused_as_by_the_original() -> None:
    acl, compared = acl_of(YML), 0
    for line in REQUESTS:
        if line.get("fields") and _is_stricter(line):
            continue
        found = acl.refusal(command(line), line["host"])
        expected = line.get("refused")
        # Of several topics and groups, the original names the first one of a hash map.
        several = line["code"] in (11, 15, 34) and str(expected).startswith("No default")
        remark = found.remark.partition(" for " if several else "\n")[0] if found else None
        expected = expected.partition(" for ")[0] if expected and several else expected
        assert remark == (expected and f"{EXCEPTION}: {expected}"), line
        compared += 1
    assert compared > 500


@pytest.mark.parametrize("code", [25, 26, 50, 51, 53, 54, 306, 17, 18, 225, 3001])
def test_what_is_of_the_whole_broker_is_for_administrators(code: int) -> None:
    acl = acl_of(YML)
    refusal = acl.refusal(signed("reader-key", code, topic="orders"), HOST)
    assert refusal is not None
    assert f"Need admin permission for request code={code}" in refusal.remark
    assert acl.refusal(signed("admin-all", code, topic="orders"), HOST) is None


def test_a_retry_topic_is_its_group_whatever_group_the_sender_names() -> None:
    acl = acl_of(YML)
    send = signed("reader-key", 310, b="%RETRY%shut", a="open")
    refusal = acl.refusal(send, HOST)
    assert refusal is not None
    assert refusal.remark == f"{EXCEPTION}: No default permission for group:shut"
    assert (refusal.user, refusal.resource, refusal.action) == ("reader-key", "group:shut", "SUB")
    assert acl.refusal(signed("reader-key", 310, b="%RETRY%open", a="shut"), HOST) is None


def test_a_batch_needs_pub() -> None:
    refusal = acl_of(YML).refusal(signed("reader-key", 320, b="orders"), HOST)
    assert refusal is not None
    assert refusal.action == "PUB"


def test_without_files_all_are_refused() -> None:
    assert PlainAcl().refusal(signed("reader-key", 310, b="orders"), HOST) is not None


@pytest.mark.parametrize(("version", "refused"), [(399, False), (401, True)])
def test_old_clients_do_not_sign_the_mark_of_unique_keys(version: int, refused: bool) -> None:
    query = signed("reader-key", 12, version=version, topic="orders")
    assert isinstance(query.ext_fields, dict)
    query.ext_fields["_UNIQUE_KEY_QUERY"] = "true"
    assert (acl_of(YML).refusal(query, HOST) is not None) == refused
    fresh = signed("reader-key", 12, topic="orders", _UNIQUE_KEY_QUERY="true")
    assert acl_of(YML).refusal(fresh, HOST) is None


def test_a_flipped_bit_is_never_accepted() -> None:
    acl = acl_of(YML)
    whole = signed("writer-key", 310, b"body", b="orders", a="g", i="props")
    assert acl.refusal(whole, HOST) is None
    assert isinstance(whole.ext_fields, dict)
    for name, text in whole.ext_fields.items():
        for at in range(len(text)):
            changed = text[:at] + chr(ord(text[at]) ^ 1) + text[at + 1 :]
            fields = {**whole.ext_fields, name: changed}
            assert acl.refusal(RemotingCommand(310, fields, b"body"), HOST) is not None
    assert acl.refusal(RemotingCommand(310, whole.ext_fields, b"Body"), HOST) is not None


def test_decisions_are_made_again_when_the_accounts_change() -> None:
    acl = acl_of(YML)
    send = signed("writer-key", 310, b="orders", a="g")
    assert acl.refusal(send, HOST) is None
    acl.hold(files_of(YML.replace("defaultTopicPerm: PUB", "defaultTopicPerm: DENY")))
    assert acl.refusal(send, HOST) is not None
    acl.hold(files_of(YML.replace("10.9.9.*", HOST)))
    assert acl.refusal(RemotingCommand(310), HOST) is None


@pytest.mark.parametrize(
    ("key", "topic", "host", "refused"),
    [
        ("reader-key", "orders", HOST, False),
        ("reader-key", "%RETRY%shut", HOST, True),
        ("writer-key", "orders", HOST, True),
        ("writer-key", "both", HOST, False),
        ("writer-key", "orders", "10.9.9.1", False),
        ("admin-all", "orders", HOST, False),
    ],
)
def test_a_message_that_is_found_by_its_id_needs_sub_of_its_topic(
    key: str, topic: str, host: str, refused: bool
) -> None:
    found = acl_of(YML).refusal_of_found(signed(key, 33), host, need_of_topic(topic, Action.GET))
    assert (found is not None) == refused


@pytest.mark.parametrize(
    ("key", "topic", "refused"),
    [
        ("reader-key", "orders", True),
        ("writer-key", "orders", False),
        ("writer-key", "both", False),
        ("admin-all", "orders", False),
    ],
)
def test_a_transaction_that_is_found_needs_pub_of_its_topic(
    key: str, topic: str, refused: bool
) -> None:
    found = acl_of(YML).refusal_of_found(signed(key, 37), HOST, need_of_topic(topic, Action.PUB))
    assert (found is not None) == refused
    assert found is None or found.action == "PUB"


def test_an_account_that_is_deleted_meanwhile_finds_nothing() -> None:
    """A message may be read from the disk between the guard's question and this one."""
    acl, need = acl_of(YML), need_of_topic("both", Action.GET)
    command = signed("writer-key", 33)
    assert acl.refusal(command, HOST) is acl.refusal_of_found(command, HOST, need) is None
    acl.hold(AclFiles())
    refusal = acl.refusal_of_found(command, HOST, need)
    assert refusal is not None
    assert (refusal.reason, refusal.user) == ("unknown account", "writer-key")
    assert acl.refusal_of_found(RemotingCommand(33, {}), HOST, need) is not None


def test_what_is_kept_has_a_limit() -> None:
    acl = acl_of(YML)
    for at in range(5_000):
        acl.refusal(signed("reader-key", 11, topic=f"t{at}", consumerGroup="g"), f"10.0.{at}.1")
    assert len(acl._decisions) <= 4_096
    assert len(acl._white) <= 4_096
    before = len(acl._decisions)
    acl.refusal(signed("reader-key", 11, topic="t" * 2_000, consumerGroup="g"), HOST)
    assert len(acl._decisions) == before
