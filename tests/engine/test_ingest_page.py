# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/ingest.md print what the pages show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.pages import check_printed, steps
from tests.spark.stores import Draft, StoreWriter


def test_the_commands_of_the_page(tmp_path: Path) -> None:
    store = StoreWriter(tmp_path / "store")
    store.put_all(Draft("Orders", body=b"%d" % number) for number in range(3))
    store.close()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command, wanted in steps("docs/ingest.md"):
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env={**os.environ, "PATH": path},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}: {done.stderr}"
        check_printed(command, wanted, done.stdout)
