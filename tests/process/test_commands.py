# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq send`, `tail` and `consume` against a running server."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from tests.process.conftest import Run
from txrocketmq.client import PushConsumer
from txrocketmq.client.consumer.config import ConsumeFrom
from txrocketmq.client.consumer.listening.listener import ConsumeContext
from txrocketmq.remoting.message.message import MessageExt
from txrocketmq.testing.server import Server


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


def test_what_tail_prints_is_what_send_reads(txrocketmq: Run, namesrv: str) -> None:
    words = ("--tag", "t", "--key", "k 1", "--property", "x=1")
    assert txrocketmq("send", "From", "zwölf", "b", *words, namesrv=namesrv).end()[0] == 0
    flags = ("From", "--from", "first", "--no-follow", "--json")
    code, printed, _ = txrocketmq("tail", *flags, namesrv=namesrv).end()
    assert code == 0
    sent = txrocketmq("send", "To", "-", "--json-lines", namesrv=namesrv, stdin=subprocess.PIPE)
    assert sent.end(printed)[0] == 0
    last = ("To", "--last", "2", "--no-follow", "--format", "%g|%k|%h|%s\\n")
    code, out, err = txrocketmq("tail", *last, namesrv=namesrv).end()
    assert (code, err) == (0, "")
    assert sorted(out.splitlines()) == ["t|k 1|x=1|b", "t|k 1|x=1|zwölf"]


def test_dead_letters_are_consumed_again(txrocketmq: Run, namesrv: str) -> None:
    assert txrocketmq("send", "Bills", "one", "two", namesrv=namesrv).end()[0] == 0

    def refuse(messages: list[MessageExt], context: ConsumeContext) -> None:
        raise ValueError("not today")

    consumer = PushConsumer(
        "payer",
        {"Bills": "*"},
        refuse,
        namesrv_addr=namesrv,
        consume_from=ConsumeFrom.FIRST_OFFSET,
        max_reconsume_times=0,
    )
    with consumer:
        listed = ""
        while listed.count("\n") < 2:  # only the test's time limit ends the wait
            listed = txrocketmq("dead-letters", "list", "payer", namesrv=namesrv).end()[1]
    assert {line.split()[2] for line in listed.splitlines()} == {"Bills"}
    status = txrocketmq("status", namesrv=namesrv).end()[1]
    assert "Warning: Group payer has 2 dead letters" in " ".join(status.split())
    code, out, _ = txrocketmq(
        "dead-letters", "resend", "payer", "--all", "-y", namesrv=namesrv
    ).end()
    assert (code, out.count("SEND_OK")) == (0, 2)
    flags = ("--group", "payer", "--count", "2", "--format", "%s\\n", "--timeout", "30")
    code, out, _ = txrocketmq("consume", "Bills", *flags, namesrv=namesrv).end()
    assert (code, sorted(out.split())) == (0, ["one", "two"])


def test_a_query_goes_on_where_it_stopped(txrocketmq: Run, namesrv: str) -> None:
    lines = "\n".join(f"m{n}" for n in range(100))
    sent = txrocketmq("send", "Paged", "-", namesrv=namesrv, stdin=subprocess.PIPE)
    assert sent.end(lines)[0] == 0
    words = ["--from", "2020-01-01"]
    found: list[str] = []
    while words:
        flags = ("messages", "query", "Paged", *words, "--count", "30")
        code, out, err = txrocketmq(*flags, namesrv=namesrv).end()
        assert code == 0
        found += [line.rpartition(" ")[2] for line in out.splitlines()]
        after = re.search("--after ([^,]+)", err)
        words = ["--after", after.group(1)] if after else []
    assert sorted(found) == sorted(lines.split())


def test_an_overview_of_a_server(txrocketmq: Run, namesrv: str) -> None:
    assert txrocketmq("send", "Seen-at-once", "x" * 1000, namesrv=namesrv).end()[0] == 0
    code, out, err = txrocketmq(namesrv=namesrv).end()
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    line = next(line for line in out.splitlines() if line.startswith("Seen-at-once"))
    assert re.fullmatch(r"Seen-at-once +\d+ +1 +[\d.]+ +1\.\d kB +20\d\d-.*", line), line


def test_a_shell_is_told_the_names_of_a_cluster(
    txrocketmq: Run, namesrv: str, tmp_path: Path
) -> None:
    assert txrocketmq("send", "Completed", "x", namesrv=namesrv).end()[0] == 0
    asking = {
        "_TXROCKETMQ_COMPLETE": "bash_complete", "COMP_WORDS": "txrocketmq tail Compl",
        "COMP_CWORD": "2", "NAMESRV_ADDR": namesrv, "XDG_CACHE_HOME": str(tmp_path),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "txrocketmq.cli"],
        env={**os.environ, **asking},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "plain,Completed\n"


def test_the_package_is_the_command_as_well() -> None:
    command = [sys.executable, "-m", "txrocketmq", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"txrocketmq {version('txrocketmq')}\n")


def test_nobody_is_there_and_one_sentence_says_what_to_do(txrocketmq: Run) -> None:
    code, out, err = txrocketmq(namesrv="127.0.0.1:1").end()
    assert (code, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert "start servers with 'txrocketmq standalone', or name those of a cluster" in err


def test_a_broker_where_a_name_server_is_meant(txrocketmq: Run, rocketmq_server: Server) -> None:
    for words in (("send", "T", "x"), ("topics", "list"), ("tail", "T"), ("status",)):
        code, _, err = txrocketmq(*words, namesrv=rocketmq_server.broker_addr).end()
        assert code == 1
        assert "it answers, but is not a name server; if it is a broker (10911), give" in err
        assert "older release" not in err


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
