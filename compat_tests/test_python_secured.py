# SPDX-License-Identifier: Apache-2.0
"""Our client with servers that want accounts (ACL 1 and 2) or encrypt."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.peers import Broker, NameServer, Origin, running
from compat_tests.scene import Scene
from txrocketmq.client import (
    Admin,
    ConsumeFrom,
    LitePullConsumer,
    MQBrokerError,
    Producer,
    new_message,
)

USER, READER, PASSWORD = "python-user", "python-reader", "12345678"
PROVIDER = "org.apache.rocketmq.auth.authentication.provider"
ACL_2 = {
    "authenticationEnabled": "true",
    "authenticationProvider": f"{PROVIDER}.DefaultAuthenticationProvider",
    "authenticationMetadataProvider": f"{PROVIDER}.LocalAuthenticationMetadataProvider",
    "initAuthenticationUser": f'{{"username":"{USER}","password":"{PASSWORD}"}}',
    "innerClientAuthenticationCredentials": (f'{{"accessKey":"{USER}","secretKey":"{PASSWORD}"}}'),
}
ACL_1 = f"""
accounts:
- accessKey: {USER}
  secretKey: {PASSWORD}
  admin: true
- accessKey: {READER}
  secretKey: {PASSWORD}
  defaultTopicPerm: SUB
  defaultGroupPerm: SUB
"""
"""conf/plain_acl.yml of a broker of 4.9.7, with an account that may only read."""
WAIT_MS = 20_000


class Closed(Broker):
    """A broker that refuses the question whether it is there."""

    def _registered(self) -> bool:
        return self.address.encode() in self.name_server.cluster_info()


@pytest.fixture
def guarded(origin: Origin, work_folder: Path) -> Iterator[Broker]:
    """A broker that wants an account: by ACL 1 in 4.9.7, by ACL 2 in 5.4.0 and ours."""
    folder = work_folder / "guarded"
    if origin.name == "original-4.9.7":
        settings = {"aclEnable": "true"}
        (folder / "conf").mkdir(parents=True, exist_ok=True)
        (folder / "conf" / "plain_acl.yml").write_text(ACL_1)
    else:
        place = {} if origin.name == "ours" else {"authConfigPath": str(folder / "auth")}
        settings = {**ACL_2, **place}
    names = NameServer(origin, work_folder / "secured-namesrv")
    broker = Closed(origin, folder, names, "broker-g", settings)
    with running(names, broker):
        yield broker


def send(namesrv: str, **settings: Any) -> Any:
    with Producer("python", namesrv_addr=namesrv, send_timeout_ms=WAIT_MS, **settings) as producer:
        return producer.send(new_message("Guarded", "x"))


def test_an_account_signs(guarded: Broker) -> None:
    namesrv = guarded.name_server.address
    result = send(namesrv, access_key=USER, secret_key=PASSWORD)
    assert result.status.name == "SEND_OK"
    for wrong in (
        {"access_key": "", "secret_key": ""},
        {"access_key": USER, "secret_key": "wrong-one"},
        {"access_key": "nobody", "secret_key": PASSWORD},
    ):
        with pytest.raises(Exception, match=r"SYSTEM_ERROR|NO_PERMISSION|signature|ccess") as error:
            send(namesrv, **wrong)
        assert isinstance(error.value, MQBrokerError) or hasattr(error.value, "attempts")


def test_whatever_is_asked_is_signed(guarded: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a consumer and an administrator as well, whose account the environment names."""
    where: dict[str, Any] = {"namesrv_addr": guarded.name_server.address}
    with pytest.raises(MQBrokerError), Admin(**where) as admin:
        admin.broker_config(broker=guarded.name)
    monkeypatch.setenv("ROCKETMQ_ACCESS_KEY", USER)
    monkeypatch.setenv("ROCKETMQ_SECRET_KEY", PASSWORD)
    with Admin(**where) as admin:
        admin.create_topic("Signed", queues=1)
        assert admin.broker_config(broker=guarded.name)["brokerName"] == guarded.name
    with Producer("python-signs", send_timeout_ms=WAIT_MS, **where) as producer:
        producer.send(new_message("Signed", "x"))
    with LitePullConsumer(
        "python-signed", {"Signed": "*"}, consume_from=ConsumeFrom.FIRST_OFFSET,
        auto_commit=False, **where,
    ) as consumer:  # fmt: skip
        assert next(iter(consumer)).body == b"x"
        (queue,) = consumer.assignment
        consumer.commit()
    with Admin(**where) as admin:
        (its,) = [each for each in admin.progress("python-signed").queues if each.queue == queue]
        assert its.consumer_offset == 1


def test_an_account_that_may_only_read(guarded: Broker) -> None:
    if guarded.origin.name != "original-4.9.7":
        pytest.skip("the accounts of ACL 2 are made by requests of its own")
    namesrv = guarded.name_server.address
    send(namesrv, access_key=USER, secret_key=PASSWORD)
    with pytest.raises(Exception, match=r"ermission"):
        send(namesrv, access_key=READER, secret_key=PASSWORD)
    with LitePullConsumer(
        "python-reads", {"Guarded": "*"}, consume_from=ConsumeFrom.FIRST_OFFSET,
        namesrv_addr=namesrv, access_key=READER, secret_key=PASSWORD,
    ) as consumer:  # fmt: skip
        assert next(iter(consumer)).body == b"x"


@pytest.mark.parametrize("size", [1, 300_000])
def test_encrypted_connections(scene: Scene, size: int) -> None:
    """Servers take them as they come, with a certificate that they make themselves."""
    topic = scene.topic(queues=1)
    settings: dict[str, Any] = {"namesrv_addr": scene.namesrv, "use_tls": True}
    with Producer("python-tls", send_timeout_ms=WAIT_MS, **settings) as producer:
        assert producer.send(new_message(topic, b"x" * size)).status.name == "SEND_OK"
    with LitePullConsumer(
        scene.unique("tls"), {topic: "*"}, consume_from=ConsumeFrom.FIRST_OFFSET, **settings
    ) as consumer:
        assert len(next(iter(consumer)).body) == size
