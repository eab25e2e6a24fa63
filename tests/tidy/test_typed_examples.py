# SPDX-License-Identifier: Apache-2.0
"""The programs of the pages about the client pass a type checker, as those of their readers do.

Functions without annotations stay without, since most programs begin so; all else is strict.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.pages import blocks

PAGES = {
    "README.md", "docs/administration.md", "docs/client.md", "docs/client_pop.md",
    "docs/client_producer.md", "docs/client_recipes.md", "docs/client_transactions.md",
    "docs/consumers.md", "docs/kafka_words.md", "docs/testing.md", "docs/tutorial.md",
}  # fmt: skip
OPTIONS = (
    "--strict", "--allow-untyped-defs", "--allow-untyped-calls", "--allow-untyped-decorators",
    "--disable-error-code=import-untyped", "--disable-error-code=import-not-found",
    "--disable-error-code=misc", "--follow-imports=silent", "--scripts-are-modules",
    "--config-file", os.devnull,
)  # fmt: skip
"""What is missing are other packages, the modules of other blocks, and the types of both."""


def test_examples_pass_a_type_checker(
    root: Path, tmp_path: Path, listed: Callable[[list[str]], str]
) -> None:
    programs = [each for each in blocks() if each.language == "python" and each.page in PAGES]
    assert {each.page for each in programs} == PAGES
    for number, program in enumerate(programs):
        name = re.sub(r"\W", "_", program.page.removesuffix(".md"))
        (tmp_path / f"{name}_{number}.py").write_text(program.text)
    names = sorted(each.name for each in tmp_path.iterdir())
    cache = ("--cache-dir", str(root / ".mypy_cache" / "examples"))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *OPTIONS, *cache, *names],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ | {"MYPYPATH": str(root / "typings")},
    )  # fmt: skip
    faults = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert not faults, listed(faults)
    assert done.returncode == 0, done.stdout + done.stderr
