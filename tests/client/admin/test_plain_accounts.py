# SPDX-License-Identifier: Apache-2.0
"""Accounts of ACL 1: what is asked, and what is read of the answers."""

from __future__ import annotations

from tests.client.admin.fake_cluster import SLAVE, Cluster
from tests.client.fakes import BROKER_A, BROKER_B, result_of
from txrocketmq.client.admin.plain_accounts import PlainAccount
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.protocol.body.auth import AclConfig, PlainAccessConfig
from txrocketmq.remoting.protocol.operations import auth
from txrocketmq.remoting.protocol.operations.auth import GetBrokerAclConfigResponseHeader

KEY = "12345678"
ALL = [BROKER_A, BROKER_B, SLAVE]


def test_accounts_are_read() -> None:
    cluster = Cluster()
    body = AclConfig(
        global_white_addrs=["10.0.0.*"],
        plain_access_configs=[
            PlainAccessConfig(
                access_key="reader", secret_key=KEY, default_topic_perm="DENY",
                topic_perms=["T=PUB|SUB", " U = SUB "],
            ),
        ],
    )  # fmt: skip
    cluster.connections.on(BROKER_A, auth.GET_BROKER_CLUSTER_ACL_CONFIG, Reply(body=body.encode()))
    found = result_of(cluster.admin.plain_accounts("broker-a"))
    assert found.white_addresses == ("10.0.0.*",)
    assert found.accounts == (
        PlainAccount(
            access_key="reader", secret_key=KEY, default_topic_perm="DENY",
            topic_perms={"T": "PUB|SUB", "U": "SUB"},
        ),
    )  # fmt: skip
    assert KEY not in repr(found)


def test_accounts_are_written_everywhere() -> None:
    cluster = Cluster()
    for address in ALL:
        for call in (
            auth.UPDATE_AND_CREATE_ACL_CONFIG,
            auth.DELETE_ACL_CONFIG,
            auth.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
        ):
            cluster.connections.on(address, call, Reply())
    account = PlainAccount(
        access_key="writer", secret_key=KEY, topic_perms={"T": "PUB", "U": "PUB|SUB"}
    )
    result_of(cluster.admin.set_plain_account(account))
    assert cluster.asked(auth.UPDATE_AND_CREATE_ACL_CONFIG) == ALL
    _, header = cluster.connections.questions(auth.UPDATE_AND_CREATE_ACL_CONFIG)[0]
    assert (header.topic_perms, header.group_perms) == ("T=PUB,U=PUB|SUB", None)
    result_of(cluster.admin.delete_plain_account("writer", broker="broker-b"))
    assert cluster.asked(auth.DELETE_ACL_CONFIG) == [BROKER_B]
    result_of(cluster.admin.set_white_addresses(["10.0.0.1", "10.0.0.2"], cluster="c"))
    _, header = cluster.connections.questions(auth.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG)[0]
    assert header.global_white_addrs == "10.0.0.1,10.0.0.2"


def test_versions_of_files() -> None:
    cluster = Cluster()
    header = GetBrokerAclConfigResponseHeader(
        version="{}",
        all_acl_file_version='{"/b.yml":{"counter":2,"timestamp":5}}',
        broker_name="broker-a",
        broker_addr=BROKER_A,
        cluster_name="c",
    )
    cluster.connections.on(BROKER_A, auth.GET_BROKER_CLUSTER_ACL_INFO, Reply(header))
    found = result_of(cluster.admin.plain_account_versions("broker-a"))
    assert {path: its.counter for path, its in found.items()} == {"/b.yml": 2}
