# SPDX-License-Identifier: Apache-2.0
"""Passwords and signatures are nowhere: not in logs, answers, settings, tracebacks, metrics, reprs.

One run of a server with accounts: accounts are made, changed, refused, and asked for in every way;
then everything that anybody could read of it is searched.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import traceback
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.beside.probe import free_port
from txrocketmq.client import Admin, MQClientError, Producer, RemotingError, new_message
from txrocketmq.client.admin.accounts import Policy
from txrocketmq.testing.server import Server, running
from txrocketmq.testing.settings import SECRET_KEY

ALICE, INNER, WRONG = "alice-Secret-4711", "inner-Secret-4711", "wrong-Secret-4711"
SECRETS = (SECRET_KEY, ALICE, INNER, WRONG)
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def metrics_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def server(metrics_port: int) -> Iterator[Server]:
    with running(
        accounts=True,
        innerClientAuthenticationCredentials=f'{{"accessKey":"inner","secretKey":"{INNER}"}}',
        metricsExporterType="PROM",
        metricsPromExporterPort=metrics_port,
    ) as made:
        yield made


def shown(text: str) -> list[str]:
    """Returns the secrets in a text, and signatures, which end with `=` as Base64 of 20 bytes."""
    found = [secret for secret in SECRETS if secret in text]
    return found + re.findall(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{27}=(?![A-Za-z0-9])", text)


def refused(**settings: Any) -> str:
    """Returns what a client says that is refused, with its traceback and its repr."""
    producer = Producer("strangers", send_timeout_ms=5_000, **settings)
    try:
        with producer:
            producer.send(new_message("Orders", "x"))
    except (MQClientError, RemotingError) as error:
        return f"{''.join(traceback.format_exception(error))} {error!r} {producer!r}"
    raise AssertionError("the client was not refused")


def answers(server: Server) -> Iterator[str]:
    """What an administrator is answered, as far as it is not asked for passwords."""
    with Admin(**server.client_settings({})) as admin:
        server.create_topic("Orders")
        admin.create_account("alice", ALICE, broker=server.broker_addr)
        yield repr(admin)
        yield repr(admin.accounts(broker=server.broker_addr))
        policy = Policy(account="alice", resource="Topic:Orders", actions=["Sub"])
        admin.set_policies([policy], broker=server.broker_addr)
        yield repr(admin.policies(broker=server.broker_addr))
        (broker,) = admin.brokers()
        yield repr(admin.broker_config(broker.name))
        yield repr(admin.broker_stats(broker.name))
        with pytest.raises(MQClientError) as same:
            admin.create_account("alice", WRONG, broker=server.broker_addr)
        yield str(same.value) + repr(same.value)
        with pytest.raises(MQClientError) as unkept:
            admin.update_broker_config(
                broker.name, {"initAuthenticationUser": f'{{"username":"x","password":"{WRONG}"}}'}
            )
        yield str(unkept.value) + repr(unkept.value)


def test_secrets_are_nowhere(server: Server, metrics_port: int) -> None:
    texts = {f"answer {n}": text for n, text in enumerate(answers(server))}
    where = {"namesrv_addr": server.namesrv_addr}
    texts["refused by policy"] = refused(access_key="alice", secret_key=ALICE, **where)
    texts["refused by signature"] = refused(access_key="alice", secret_key=WRONG, **where)
    texts["unknown"] = refused(access_key="carol", secret_key=WRONG, **where)
    address = f"http://127.0.0.1:{metrics_port}/metrics"
    with urllib.request.urlopen(address, timeout=10) as answer:
        texts["metrics"] = answer.read().decode()
    assert "alice" in texts["answer 1"]
    assert "no policy" in texts["refused by policy"]
    texts["log"] = server.log_path.read_text()
    assert "refused" in texts["log"]
    assert {name: found for name, text in texts.items() if (found := shown(text))} == {}


def test_settings_that_are_printed_have_no_secrets(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text(
        "authenticationEnabled=true\n"
        f'initAuthenticationUser={{"username":"x","password":"{ALICE}"}}\n'
        f'innerClientAuthenticationCredentials={{"accessKey":"y","secretKey":"{INNER}"}}\n'
    )
    broken = tmp_path / "broken.conf"
    broken.write_text(
        f'authenticationEnabled=true\ninitAuthenticationUser={{"password":"{ALICE}"\n'
    )
    for words in (["-p", "-c", str(conf)], ["-c", str(broken)]):
        done = subprocess.run(
            [str(BIN / "mqbroker"), *words],
            capture_output=True, text=True, check=False, timeout=50, cwd=tmp_path,
            env={**os.environ, "ROCKETMQ_HOME": str(tmp_path)},
        )  # fmt: skip
        said = done.stdout + done.stderr
        assert "initAuthenticationUser" in said
        assert [secret for secret in SECRETS if secret in said] == []


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"innerClientAuthenticationCredentials": json.dumps({"secretKey": INNER})}),
        json.dumps({"innerClientAuthenticationCredentials": INNER}),
        json.dumps({"innerClientAuthenticationCredentials": {"secretKey": INNER}}),
        f'{{"innerClientAuthenticationCredentials": {INNER}}}',
    ],
    ids=["without a name", "a text", "an object", "no JSON"],
)
def test_a_proxy_prints_no_secrets(tmp_path: Path, text: str) -> None:
    (tmp_path / "rmq-proxy.json").write_text(text)
    done = subprocess.run(
        [str(BIN / "txrocketmq"), "proxy", "-p", "-pc", "rmq-proxy.json"],
        capture_output=True, text=True, check=False, timeout=50, cwd=tmp_path,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert "rmq-proxy.json" in said or "innerClient" in said
    assert INNER not in said


@pytest.mark.parametrize("change", ["", "cut", "no quotes"])
def test_contexts_show_no_secrets(tmp_path: Path, change: str) -> None:
    """Whatever the file of contexts looks like, which people may write themselves."""
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "ROCKETMQ_SECRET_KEY": ALICE}

    def run(*words: str) -> str:
        done = subprocess.run(
            [str(BIN / "txrocketmq"), *words],
            capture_output=True, text=True, check=False, timeout=50, env=environment,
        )  # fmt: skip
        return done.stdout + done.stderr

    words = ("--namesrv", "127.0.0.1:1", "--access-key", "alice")
    said = run("contexts", "add", "shop", *words)
    file = tmp_path / "txrocketmq" / "contexts.toml"
    text = file.read_text()
    assert ALICE in text
    changed = {"cut": text.rstrip()[:-1], "no quotes": text.replace(f'"{ALICE}"', ALICE)}
    file.write_text(changed.get(change, text))
    for command in (("contexts", "show", "shop"), ("contexts", "list"), ("topics", "list")):
        said += run(*command, *([] if command[0] == "contexts" else ["--context", "shop"]))
    assert "shop" in said
    assert ALICE not in said
