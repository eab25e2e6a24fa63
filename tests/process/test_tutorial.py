# SPDX-License-Identifier: Apache-2.0
"""docs/tutorial.md, from its first line to its last: programs are saved, commands are typed.

A command whose output ends with "^C" is a program that goes on until somebody interrupts it. It is
interrupted when it has printed the lines that the page shows, in whatever order, and reported the
messages as consumed: a person waits longer than that.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.pages import Block, blocks, check_printed, commands
from txrocketmq.testing.server import Server

PAGE: Final = "docs/tutorial.md"
GROUP: Final = "stock"
INTERRUPTED: Final = "^C\n"
DEADLINE_S: Final = 60


class Reader:
    """Somebody who does what the page says, in a folder of their own."""

    def __init__(self, folder: Path, server: Server) -> None:
        self._folder = folder
        self._server = server
        programs = Path(sys.executable).parent
        self._environment = {
            **os.environ,
            "NAMESRV_ADDR": server.namesrv_addr,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        }

    def read(self, block: Block) -> None:
        """Saves a program, or types the commands."""
        if block.language == "python":
            name = re.match(r"# (\w+\.py)\n", block.text)
            assert name is not None, f"this program has no name:\n{block.text}"
            text = block.text.replace("127.0.0.1:9876", self._server.namesrv_addr)
            (self._folder / name[1]).write_text(text, "utf-8")
        elif block.language == "console":
            for command, output in commands(block):
                if output.endswith(INTERRUPTED):
                    self._interrupt(command, output.removesuffix(INTERRUPTED))
                else:
                    self._type(command, output)

    def _type(self, command: str, wanted: str) -> None:
        done = subprocess.run(
            ["bash", "-c", command], cwd=self._folder, env=self._environment,
            capture_output=True, text=True, check=False, timeout=DEADLINE_S,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        check_printed(command, wanted, done.stdout)

    def _interrupt(self, command: str, wanted: str) -> None:
        errors = self._folder / "errors"
        missing = sorted(wanted.splitlines())
        with errors.open("w") as log:
            program = subprocess.Popen(
                command.split(), cwd=self._folder, env=self._environment,
                stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip
        assert program.stdout is not None
        try:
            while missing and (line := program.stdout.readline().rstrip("\n")):
                assert line in missing, f"{command} prints {line!r}; to come are {missing}"
                missing.remove(line)
            self._server.wait_consumed(GROUP, timeout_s=DEADLINE_S)
            program.send_signal(signal.SIGINT)
            rest, _ = program.communicate(timeout=DEADLINE_S)
        finally:
            program.kill()
            program.wait()
        assert not missing, f"{command} does not print {missing}: {errors.read_text()}"
        assert (rest, program.returncode) == ("", 0), errors.read_text()


def test_it_does_what_it_says(rocketmq: Server, tmp_path: Path) -> None:
    reader = Reader(tmp_path, rocketmq)
    page = [block for block in blocks() if block.page == PAGE]
    for block in page:
        reader.read(block)
    typed = "".join(block.text for block in page if block.language == "console")
    for step in ("python shop.py", "python stock.py", "%DLQ%", "pytest", "lag"):
        assert step in typed, f"the tutorial has lost {step}"
