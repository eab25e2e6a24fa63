# SPDX-License-Identifier: Apache-2.0
"""Clients in programs that fork, as servers with workers and pools of processes do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from txrocketmq.testing.server import Server

FORKED = """
import os, sys
from txrocketmq.client import Producer, PushConsumer, new_message

def send(producer, text):
    return producer.send(new_message("Forks", text)).msg_id

where = {"namesrv_addr": sys.argv[1]}
with Producer("parents", **where) as producer:
    send(producer, "so that the topic is there")
    with PushConsumer("forks", {"Forks": "*"}, lambda *_: None, **where):
        send(producer, "parent")
        pid = os.fork()
        if not pid:
            try:
                send(producer, "never")
            except RuntimeError as error:
                print("child:", error, flush=True)
            with Producer("children", **where) as its_own:
                print("child sends", len(send(its_own, "child")), flush=True)
            sys.exit(0)  # which does not end the clients of the parent
        assert os.waitpid(pid, 0)[1] == 0
        print("parent sends", len(send(producer, "parent again")))
"""
POOL = """
import multiprocessing, sys
from multiprocessing.util import Finalize
from txrocketmq.client import Producer, new_message

def start(where):
    global producer
    producer = Producer("pools", namesrv_addr=where).start()
    Finalize(None, producer.shutdown, exitpriority=10)

def send(number):
    return producer.send(new_message("Forks", str(number))).msg_id

if __name__ == "__main__":
    with Producer("parents", namesrv_addr=sys.argv[1]) as mine:  # its thread runs at the fork
        mine.send(new_message("Forks", "first"))
        context = multiprocessing.get_context(sys.argv[2])
        pool = context.Pool(2, initializer=start, initargs=(sys.argv[1],))
        print(len(set(pool.map(send, range(20)))))
        pool.close()
        pool.join()
"""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )


def test_a_client_belongs_to_the_process_that_has_created_it(rocketmq_server: Server) -> None:
    done = run("-c", FORKED, rocketmq_server.namesrv_addr)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "child: the client is not running, since it was created before os.fork(): create a new one",
        "child sends 32",
        "parent sends 32",
    ]
    assert done.stderr == ""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_pools_of_processes(rocketmq_server: Server, tmp_path: Path, method: str) -> None:
    program = tmp_path / "pool.py"
    program.write_text(POOL)
    done = run(str(program), rocketmq_server.namesrv_addr, method)
    assert (done.stdout, done.stderr) == ("20\n", "")
