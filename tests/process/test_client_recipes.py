# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/client_recipes.md for frameworks, with stand-ins for these frameworks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.pages import blocks
from txrocketmq.client import Producer, new_message
from txrocketmq.testing.server import Server

PROGRAMS: Final = {
    block.text.splitlines()[0].removeprefix("# "): block.text
    for block in blocks()
    if block.page == "docs/client_recipes.md" and block.text.startswith("# ")
}
FASTAPI: Final = """
class FastAPI:
    def __init__(self, lifespan):
        self.lifespan, self.routes, self.state = lifespan, {}, type("State", (), {})()

    def post(self, path):
        return lambda handler: self.routes.setdefault(path, handler)
"""
DJANGO: Final = """
class JsonResponse(dict):
    pass
"""
ASK_FASTAPI: Final = """
import asyncio
import fastapi_app as page

async def main():
    async with page.app.lifespan(page.app):
        answer = await page.app.routes["/orders/{name}"](name="book")
        async with asyncio.timeout(90):
            while "book" not in page.seen:
                await asyncio.sleep(0.05)
        print("answered", len(answer["id"]))

asyncio.run(main())
"""
ASK_DJANGO: Final = """
import django_orders as page
first, second = page.order(None, "book"), page.order(None, "pen")
print("answered", len(first["id"]), first != second)
"""


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("name", "stand_in", "module", "ask", "printed"),
    [
        ("fastapi_app.py", FASTAPI, "fastapi.py", ASK_FASTAPI, "answered 32\n"),
        ("django_orders.py", DJANGO, "django/http.py", ASK_DJANGO, "answered 32 True\n"),
    ],
    ids=["fastapi", "django"],
)
def test_a_service_sends(
    rocketmq_server: Server,
    tmp_path: Path,
    name: str,
    stand_in: str,
    module: str,
    ask: str,
    printed: str,
) -> None:
    where = rocketmq_server.namesrv_addr
    with Producer("makes-orders", namesrv_addr=where) as producer:
        producer.send(new_message("Orders", "x"))
    (tmp_path / module).parent.mkdir(exist_ok=True)
    (tmp_path / module).write_text(stand_in)
    (tmp_path / name).write_text(PROGRAMS[name])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ask],
        capture_output=True, text=True, check=False, timeout=150, cwd=tmp_path,
        env={**os.environ, "NAMESRV_ADDR": where},
    )  # fmt: skip
    assert (done.returncode, done.stderr, done.stdout) == (0, "", printed)


def test_all_programs_are_run() -> None:
    assert set(PROGRAMS) == {"fastapi_app.py", "django_orders.py"}
