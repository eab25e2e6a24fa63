# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/client_recipes.md for FastAPI, Django and Celery, run by these."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.pages import blocks
from txrocketmq.testing.server import Server

DEADLINE_S: Final = 60
PROGRAMS: Final = {
    block.text.splitlines()[0].removeprefix("# "): block.text
    for block in blocks()
    if block.page == "docs/client_recipes.md" and block.text.startswith("# ")
}
FASTAPI: Final = """
from fastapi_app import app, seen

@app.get("/seen")
async def what_was_seen():
    return seen
"""
DJANGO: Final = """
import sys
from wsgiref.simple_server import make_server, WSGIServer

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import path

settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="x")
application = get_wsgi_application()

import django_orders  # before any fork, as a server that forks imports the application

urlpatterns = [path("orders/<str:name>", django_orders.order)]
"""
PREFORK: Final = """
import os, signal, sys
import django_app
from wsgiref.simple_server import make_server

server = make_server("127.0.0.1", 0, django_app.application)
workers = []
for _ in range(2):  # each serves one connection after the other, and ends after three
    if not (pid := os.fork()):
        for _ in range(3):
            server.handle_request()
        sys.exit(0)
    workers.append(pid)
print("http://127.0.0.1:%d" % server.server_port, flush=True)
print("workers ended with", *(os.waitpid(pid, 0)[1] for pid in workers), flush=True)
"""


NAMESRV: Final = "NAMESRV_ADDR=127.0.0.1:9876"
COMMANDS: Final = [
    shlex.split(line)[1:]
    for block in blocks()
    if block.page == "docs/client_recipes.md" and block.language == "sh"
    for line in block.text.splitlines()
    if line.startswith(NAMESRV)
]
"""The commands of the page, which name the servers in the environment."""


def command_of(program: str, *changes: tuple[str, str]) -> list[str]:
    """The command by which the page runs a program, with some of its words changed."""
    (command,) = (each for each in COMMANDS if program in each)
    return [sys.executable, *([] if command[0] == "python" else ["-m", command[0]])] + [
        dict(changes).get(word, word) for word in command[1:]
    ]


@contextmanager
def served(
    command: list[str], folder: Path, where: str
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server that says on which address it listens, until the end of the block."""
    process = subprocess.Popen(
        command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "NAMESRV_ADDR": where, "PYTHONPATH": str(folder)},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                yield found.group(), process
                return
        pytest.fail(f"it does not listen: {said}")
    finally:
        process.kill()
        process.communicate()


def ask(address: str, *, method: str = "GET") -> Any:
    request = urllib.request.Request(address, method=method)  # noqa: S310 - of our own server
    with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:  # noqa: S310 - likewise
        return json.loads(answer.read())


def test_fastapi(rocketmq: Server, tmp_path: Path) -> None:
    """On a fresh server: the topic comes with the first order."""
    (tmp_path / "fastapi_app.py").write_text(PROGRAMS["fastapi_app.py"])
    (tmp_path / "app_to_ask.py").write_text(FASTAPI)
    command = command_of("fastapi_app:app", ("fastapi_app:app", "app_to_ask:app"), ("8000", "0"))
    with served(command, tmp_path, rocketmq.namesrv_addr) as (address, process):
        assert len(ask(f"{address}/orders/book", method="POST")["id"]) == 32
        deadline = time.monotonic() + DEADLINE_S
        while ask(f"{address}/seen") != ["book"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, said
    assert "Application shutdown complete" in said
    assert "was not shut down" not in said
    assert rocketmq.lag("web-consumers", "Orders") == 0


def test_django_in_processes_that_were_forked(rocketmq: Server, tmp_path: Path) -> None:
    rocketmq.create_topic("Orders", queues=1)
    (tmp_path / "django_orders.py").write_text(PROGRAMS["django_orders.py"])
    (tmp_path / "django_app.py").write_text(DJANGO)
    (tmp_path / "prefork.py").write_text(PREFORK)
    command = [sys.executable, "prefork.py"]
    with served(command, tmp_path, rocketmq.namesrv_addr) as (address, process):
        ids = [ask(f"{address}/orders/order{number}")["id"] for number in range(6)]
        said, _ = process.communicate(timeout=DEADLINE_S)
    assert len(set(ids)) == 6
    assert process.returncode == 0, said
    assert "workers ended with 0 0" in said
    assert "was not shut down" not in said
    messages = rocketmq.messages("Orders")
    assert [each.body.decode() for each in messages] == [f"order{number}" for number in range(6)]
    producers = {each.unique_key[:16] for each in messages if each.unique_key}
    assert len(producers) == 2, "each process has a producer of its own"


@contextmanager
def running(command: list[str], folder: Path, where: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has to end in order when it is terminated after the block."""
    process = subprocess.Popen(
        command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "NAMESRV_ADDR": where},
    )  # fmt: skip
    try:
        yield process
        process.terminate()
        said, _ = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, said
    assert "was not shut down" not in said
    assert "Traceback" not in said, said


def test_celery_in_processes_that_were_forked(rocketmq: Server, tmp_path: Path) -> None:
    for topic in ("Orders", "Shipments"):
        rocketmq.create_topic(topic, queues=1)
    names = {f"order{number}" for number in range(20)}
    for name in names:
        rocketmq.send("Orders", name)
    (tmp_path / "queue").mkdir()
    for program in ("celeryconfig.py", "celery_orders.py", "celery_tasks_of_orders.py"):
        (tmp_path / program).write_text(PROGRAMS[program])
    where = rocketmq.namesrv_addr
    with (
        running(command_of("celery_orders"), tmp_path, where),
        running(command_of("celery_tasks_of_orders.py"), tmp_path, where),
    ):
        deadline = time.monotonic() + DEADLINE_S
        while len(messages := rocketmq.messages("Shipments")) < len(names):
            assert time.monotonic() < deadline, f"{len(messages)} of {len(names)}"
            time.sleep(0.05)
    assert {message.body.decode() for message in messages} == names
    producers = {each.unique_key[:16] for each in messages if each.unique_key}
    assert len(producers) <= 2, "each process has one producer"
    assert rocketmq.lag("task-makers", "Orders") == 0


@pytest.mark.parametrize("pool", ["gevent", "threads"])
def test_celery_without_forks(rocketmq: Server, tmp_path: Path, pool: str) -> None:
    """With the signals that the page names for such workers."""
    if pool == "gevent":
        pytest.importorskip("gevent")
    rocketmq.create_topic("Shipments", queues=1)
    (tmp_path / "queue").mkdir()
    (tmp_path / "celeryconfig.py").write_text(PROGRAMS["celeryconfig.py"])
    program = PROGRAMS["celery_orders.py"].replace("worker_process_", "worker_")
    (tmp_path / "celery_orders.py").write_text(program)
    where, names = rocketmq.namesrv_addr, {f"order{number}" for number in range(5)}
    worker = [sys.executable, "-m", "celery", "-A", "celery_orders", "worker", "-P", pool]
    task = "import sys; from celery_orders import ship; [ship.delay(n) for n in sys.argv[1:]]"
    with running(worker, tmp_path, where):
        subprocess.run([sys.executable, "-c", task, *names], cwd=tmp_path, check=True, timeout=60)
        deadline = time.monotonic() + DEADLINE_S
        while len(messages := rocketmq.messages("Shipments")) < len(names):
            assert time.monotonic() < deadline, f"{len(messages)} of {len(names)}"
            time.sleep(0.05)
    assert {message.body.decode() for message in messages} == names
    assert len({each.unique_key[:16] for each in messages if each.unique_key}) == 1


SPAWNED: Final = """
import multiprocessing, runpy
from pool_orders import *  # for the processes that are spawned

if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    runpy.run_path("pool_orders.py", {}, "__main__")
"""


@pytest.mark.parametrize("program", ["pool_orders.py", "spawned.py"])
def test_a_pool_of_processes(rocketmq: Server, tmp_path: Path, program: str) -> None:
    rocketmq.create_topic("Orders", queues=1)
    (tmp_path / "pool_orders.py").write_text(PROGRAMS["pool_orders.py"])
    (tmp_path / "spawned.py").write_text(SPAWNED)
    done = subprocess.run(
        [sys.executable, program],
        cwd=tmp_path, env={**os.environ, "NAMESRV_ADDR": rocketmq.namesrv_addr},
        capture_output=True, text=True, check=False, timeout=DEADLINE_S,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    messages = rocketmq.messages("Orders")
    assert sorted(done.stdout.split()) == sorted(each.unique_key or "" for each in messages)
    assert len({each.body for each in messages}) == 10


def test_all_programs_are_run() -> None:
    assert set(PROGRAMS) == {
        "fastapi_app.py", "django_orders.py", "celery_orders.py", "celery_tasks_of_orders.py",
        "celeryconfig.py", "pool_orders.py",
    }  # fmt: skip
