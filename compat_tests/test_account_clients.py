# SPDX-License-Identifier: Apache-2.0
"""Clients of other languages with accounts: the same is allowed and refused as by the original.

Go, C++ (through its Python wheel), and calls of gRPC to the original's proxy, which asks the broker
for accounts and policies. Each client does the same at the original 5.4.0 and at ours; what it is
told is compared in code and remark.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compat_tests import go_client, python_client
from compat_tests.account_scenes import ALICE, PROXY_2, alice_at
from compat_tests.engine import Engine
from compat_tests.peers import Broker, Original, Ours, Proxy
from compat_tests.test_grpc_accounts import answers

KEYS = {"access_key": ALICE[0], "secret_key": ALICE[1]}
WRONG = {**KEYS, "secret_key": "wrong"}
UNKNOWN = {"access_key": "carol", "secret_key": "x"}
CASES: dict[str, tuple[str, dict[str, str]]] = {
    "as alice": ("Orders", KEYS),
    "elsewhere": ("Other", KEYS),
    "with a wrong secret": ("Orders", WRONG),
    "of nobody": ("Orders", UNKNOWN),
    "without an account": ("Orders", {}),
}
"""What a client sends: the topic, and as whom."""
_REMARK = re.compile(
    r"User:\w+ (?:has no permission to access \S+ from \S+, [a-z ]+\.|is not found\.|is disabled\.)"
    r"|check signature failed\.|username cannot be null\."
)
_CODE = re.compile(r"(?:CODE: |code[:=] ?)(\d+)")
Said = dict[str, str]


def words(text: str) -> str:
    """Returns code and remark of a refusal out of what a client says."""
    remark, code = _REMARK.search(text), _CODE.search(text)
    return f"{code[1] if code else '-'} {remark[0] if remark else text}"


def compared(engine: Engine, folder: Path, says: Callable[[Broker, Path], Said]) -> Said:
    """Returns what a client says at our broker, which has to be what it says at the original."""
    said = []
    for origin in (Original("5.4.0", engine), Ours()):
        with alice_at(origin, folder / origin.name) as broker:
            said.append(says(broker, folder / f"client-{origin.name}"))
    original, ours = said
    assert ours == original
    return ours


def tried(work: Callable[[], str]) -> str:
    try:
        return work()
    except AssertionError as error:
        return words(str(error))


@pytest.mark.timeout(500)  # the first time it is built
def test_go_with_an_account(engine: Engine, test_folder: Path) -> None:
    try:
        program = go_client.build()
    except go_client.GoUnavailable as error:
        pytest.skip(str(error))

    def says(broker: Broker, _: Path) -> Said:
        where = {"namesrv": broker.name_server.address, "count": 4}

        def send(topic: str, keys: dict[str, str]) -> str:
            run = go_client.GoClient(program, op="produce", topic=topic, **where, **keys)
            return f"sent {[event['status'] for event in run.events()]}"

        said = {
            what: tried(lambda topic=topic, keys=keys: send(topic, keys))  # type: ignore[misc]
            for what, (topic, keys) in CASES.items()
        }
        consume = {"op": "consume", "topic": "Orders", "group": "readers", "expression": "*"}
        received = go_client.GoClient(program, **consume, **where, **KEYS).events()
        return {**said, "received": ", ".join(sorted(event["body"] for event in received))}

    said = compared(engine, test_folder, says)
    assert said["received"] == "go-0, go-1, go-2, go-3"
    assert "no permission to access Topic:Other" in said["elsewhere"]
    assert "check signature failed." in said["with a wrong secret"]


@pytest.mark.timeout(500)  # the first time it is installed
def test_cpp_with_an_account(engine: Engine, test_folder: Path) -> None:
    try:
        python = python_client.install()
    except python_client.PythonClientUnavailable as error:
        pytest.skip(str(error))

    def says(broker: Broker, home: Path) -> Said:
        where = {"namesrv": broker.name_server.address, "group": "readers", "count": 3}

        def run(op: str, topic: str, keys: dict[str, str]) -> list[dict[str, Any]]:
            return python_client.run(python, home, op=op, topic=topic, **where, **keys)

        said = {
            what: tried(
                lambda topic=topic, keys=keys: (  # type: ignore[misc]
                    f"sent {[each['status'] for each in run('produce', topic, keys)]}"
                )
            )
            for what, (topic, keys) in CASES.items()
        }
        return {**said, "received": str(len(run("consume", "Orders", KEYS)))}

    said = compared(engine, test_folder, says)
    assert (said["as alice"], said["received"]) == ("sent [0, 0, 0]", "3")
    assert not any(said[what].startswith("sent") for what in CASES if what != "as alice")


@pytest.mark.timeout(600)
def test_the_proxy_of_the_original_in_front_of_ours(engine: Engine, test_folder: Path) -> None:
    """It asks our broker for accounts and policies as it asks the original, and signs its sends."""

    def says(broker: Broker, folder: Path) -> Said:
        proxy = Proxy(engine, folder, broker.name_server, PROXY_2)
        try:
            proxy.start()
            return {what: f"{code} {text}" for what, (code, text) in answers(proxy).items()}
        finally:
            proxy.kill()

    said = compared(engine, test_folder, says)
    assert said["alice sends"].startswith("20000 ")
    assert "no permission to access Topic:Other" in said["elsewhere"]
    assert "check signature failed." in said["a wrong secret"]
