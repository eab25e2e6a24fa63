# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/consumers.md, run as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from txrocketmq.testing.server import Server, running

TIMEOUT_S = 300
PAGE = Path(__file__).parents[2] / "docs" / "consumers.md"
PROGRAMS: dict[str, str] = dict(
    re.findall(
        r"^```python\n# (\S+\.py)\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
)
PRINTED = {
    "push.py": "o1 o2 o3 o4",
    "push_aio.py": "o1 o2 o3 o4",
    "push_decorated.py": "o1 o2 o3 o4",
    "orderly.py": "5 calls for 4 messages",
    "lite_pull.py": "o1 o2 o3 o4",
    "broadcast.py": "offsets.json",
}


def run(folder: Path, server: Server, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"NAMESRV_ADDR": server.namesrv_addr},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One with four orders."""
    with running() as found:
        folder = tmp_path_factory.mktemp("orders")
        for number in range(1, 5):
            run(folder, found, "-m", "txrocketmq.cli", "send", "orders", f"o{number}")
        yield found


def test_the_page_has_the_programs_that_are_run() -> None:
    assert PROGRAMS.keys() == PRINTED.keys()


@pytest.mark.parametrize("name", PRINTED)
def test_it_prints_what_it_should(server: Server, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(PROGRAMS[name], "utf-8")
    assert run(tmp_path, server, name).strip() == PRINTED[name]
