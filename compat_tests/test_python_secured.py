# SPDX-License-Identifier: Apache-2.0
"""Our client with original servers: accounts (ACL 2) and encryption; ours know neither yet."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.peers import Broker, NameServer, Origin, running
from compat_tests.scene import Scene
from txrocketmq.client import (
    ConsumeFrom,
    LitePullConsumer,
    MQBrokerError,
    Producer,
    new_message,
)

USER, PASSWORD = "python", "12345678"
PROVIDER = "org.apache.rocketmq.auth.authentication.provider"
ACL_2 = {
    "authenticationEnabled": "true",
    "authenticationProvider": f"{PROVIDER}.DefaultAuthenticationProvider",
    "authenticationMetadataProvider": f"{PROVIDER}.LocalAuthenticationMetadataProvider",
    "initAuthenticationUser": f'{{"username":"{USER}","password":"{PASSWORD}"}}',
    "innerClientAuthenticationCredentials": (f'{{"accessKey":"{USER}","secretKey":"{PASSWORD}"}}'),
}
WAIT_MS = 20_000


class Closed(Broker):
    """A broker that refuses the question whether it is there."""

    def _registered(self) -> bool:
        return self.address.encode() in self.name_server.cluster_info()


@pytest.fixture
def names(origin: Origin, work_folder: Path) -> NameServer:
    if origin.name != "original-5.4.0":
        pytest.skip("accounts of ACL 2 are the original's, since 5.3")
    return NameServer(origin, work_folder / "secured-namesrv")


@pytest.fixture
def guarded(origin: Origin, names: NameServer, work_folder: Path) -> Iterator[Broker]:
    """A broker that wants an account."""
    folder = work_folder / "guarded"
    settings = {**ACL_2, "authConfigPath": str(folder / "auth")}
    broker = Closed(origin, folder, names, "broker-g", settings)
    with running(names, broker):
        yield broker


def send(namesrv: str, **settings: Any) -> Any:
    with Producer("python", namesrv_addr=namesrv, send_timeout_ms=WAIT_MS, **settings) as producer:
        return producer.send(new_message("Guarded", "x"))


@pytest.mark.timeout(240)
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


@pytest.mark.timeout(240)
@pytest.mark.parametrize("size", [1, 300_000])
def test_encrypted_connections(origin: Origin, scene: Scene, size: int) -> None:
    """Original servers take them as they come, with a certificate that they make themselves."""
    if origin.name == "ours":
        pytest.skip("our servers do not encrypt")
    topic = scene.topic(queues=1)
    settings: dict[str, Any] = {"namesrv_addr": scene.namesrv, "use_tls": True}
    with Producer("python-tls", send_timeout_ms=WAIT_MS, **settings) as producer:
        assert producer.send(new_message(topic, b"x" * size)).status.name == "SEND_OK"
    with LitePullConsumer(
        scene.unique("tls"), {topic: "*"}, consume_from=ConsumeFrom.FIRST_OFFSET, **settings
    ) as consumer:
        assert len(next(iter(consumer)).body) == size
