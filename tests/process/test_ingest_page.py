# SPDX-License-Identifier: Apache-2.0
"""What docs/ingest.md shows works: its commands print that, and its programs run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import blocks, check_printed, steps
from tests.spark.stores import Draft, StoreWriter


def test_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
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
    programs = [b.text for b in blocks() if b.page == "docs/ingest.md" and b.language == "python"]
    monkeypatch.chdir(tmp_path)
    for code in programs:
        exec(code.replace('"table"', repr(f"{tmp_path}/table")), {})  # noqa: S102 - ours
    printed = capsys.readouterr().out
    assert "│ 2025-11-13 │            3 │" in printed
    assert "Name: queueOffset" in printed
    assert "iceberg" in programs[1]
    assert "compact" in programs[2]
