# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq send`, `tail` and `consume` against a running server."""

from __future__ import annotations

import json
import signal
import subprocess

from tests.process.conftest import Run


def test_what_is_sent_is_seen(txrocketmq: Run, namesrv: str) -> None:
    tail = txrocketmq("tail", "Seen", "--count", "3", namesrv=namesrv)
    assert "topic Seen has no route" in tail.complaint()
    sent = txrocketmq("send", "Seen", "one", "zwölf", "--tag", "A", "--key", "k", namesrv=namesrv)
    code, out, _ = sent.end()
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["SEND_OK", "SEND_OK"]
    assert {tail.line()[24:].partition(" ")[2], tail.line()[24:].partition(" ")[2]} == {
        "[A] {keys=k} one",
        "[A] {keys=k} zwölf",
    }
    sent = txrocketmq("send", "Seen", "-", namesrv=namesrv, stdin=subprocess.PIPE)
    assert sent.end("\nthree\n\n")[0] == 0
    code, out, _ = tail.end()
    assert (code, out.rstrip().rpartition(" ")[2]) == (0, "three")


def test_batches_tags_and_json(txrocketmq: Run, namesrv: str) -> None:
    lines = "\n".join(f"line {n}" for n in range(3000))
    sent = txrocketmq("send", "Many", "-", "--batch", namesrv=namesrv, stdin=subprocess.PIPE)
    assert sent.end(lines)[0] == 0
    assert txrocketmq("send", "Many", "x" * 9_000, "--tag", "B", namesrv=namesrv).end()[0] == 0
    flags = ("--from", "first", "--json", "--timeout", "1")
    code, out, _ = txrocketmq("tail", "Many", *flags, namesrv=namesrv).end()
    messages = [json.loads(line) for line in out.splitlines()]
    assert (code, len(messages)) == (0, 3001)
    assert {m["body"] for m in messages} == {*lines.splitlines(), "x" * 9_000}
    only_b = ("--from", "first", "--tag", "A || B", "--count", "1", "--json")
    code, out, _ = txrocketmq("tail", "Many", *only_b, namesrv=namesrv).end()
    assert (code, json.loads(out)["body"]) == (0, "x" * 9_000)


def test_ctrl_c_ends_a_tail(txrocketmq: Run, namesrv: str) -> None:
    assert txrocketmq("send", "Stopped", "one", namesrv=namesrv).end()[0] == 0
    tail = txrocketmq("tail", "Stopped", "--from", "first", namesrv=namesrv)
    assert tail.line().endswith(" one")
    tail.signal(signal.SIGINT)
    assert tail.end() == (0, "", "")


def test_ctrl_c_ends_a_send_that_waits_for_lines(txrocketmq: Run, namesrv: str) -> None:
    flags = {"namesrv": namesrv, "stdin": subprocess.PIPE}
    send = txrocketmq("send", "Stopped", "first", "-", **flags)
    assert send.line().startswith("SEND_OK")
    send.signal(signal.SIGINT)
    assert send.process.wait(30) == 130
    assert send.complaint() == ""


def test_a_reader_that_goes_ends_a_tail(txrocketmq: Run, namesrv: str) -> None:
    assert txrocketmq("send", "Piped", "one", namesrv=namesrv).end()[0] == 0
    tail = txrocketmq("tail", "Piped", "--from", "first", namesrv=namesrv)
    assert tail.line().endswith(" one")
    assert tail.process.stdout is not None
    tail.process.stdout.close()
    assert txrocketmq("send", "Piped", "two", namesrv=namesrv).end()[0] == 0
    assert tail.process.wait(30) == 0
    assert tail.complaint() == ""


def test_a_group_shares_a_topic_and_goes_on_where_it_stopped(txrocketmq: Run, namesrv: str) -> None:
    def send(first: int, last: int) -> None:
        lines = "\n".join(str(n) for n in range(first, last))
        sent = txrocketmq("send", "Shared", "-", namesrv=namesrv, stdin=subprocess.PIPE)
        assert sent.end(lines)[0] == 0

    def member(*more: str) -> list[int]:
        flags = ("--group", "team", "--from", "first", "--json", *more)
        code, out, err = txrocketmq("consume", "Shared", *flags, namesrv=namesrv).end()
        assert (code, err) == (0, "")
        return [int(json.loads(line)["body"]) for line in out.splitlines()]

    send(0, 40)
    assert sorted(member("--count", "40")) == list(range(40))
    send(40, 60)
    assert sorted(member("--count", "20")) == list(range(40, 60))
    assert member("--timeout", "1") == []


def test_ctrl_c_ends_a_consumer_which_has_committed(txrocketmq: Run, namesrv: str) -> None:
    assert txrocketmq("send", "Left", "one", namesrv=namesrv).end()[0] == 0
    flags = ("Left", "--group", "leaving", "--from", "first")
    consumer = txrocketmq("consume", *flags, namesrv=namesrv)
    assert consumer.line().endswith(" one")
    consumer.signal(signal.SIGINT)
    assert consumer.end() == (0, "", "")
    again = txrocketmq("consume", *flags, "--timeout", "1", namesrv=namesrv)
    assert again.end() == (0, "", "")


def test_nobody_at_the_name_servers_address(txrocketmq: Run) -> None:
    code, out, err = txrocketmq("send", "T", "x", namesrv="127.0.0.1:1").end()
    assert (code, out) == (1, "")
    assert err.startswith("txrocketmq send: no name server is reachable: 127.0.0.1:1 (")
    assert len(err.splitlines()) == 1
