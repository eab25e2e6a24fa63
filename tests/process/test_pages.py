# SPDX-License-Identifier: Apache-2.0
"""What the pages tell people to type works.

Fenced blocks say by their language what is to be done with them:

- `console`: lines that begin with "$ " are run here, in order, against a server of their own; the
  lines after each are what it prints, where "..." is anything. Those of `BY_THEMSELVES`
  are run by a test of their own.
- `sh`: shown only, since it takes long or needs more than this machine has; programs of ours and
  their options, and targets of the Makefile, must exist.
- `python`: one that begins with the name of a test module is run by pytest.

Commands within sentences, between backticks, must exist as those of `sh` must.

Blocks that begin with the name of a file and are in other languages, or need Docker, are run by
compat_tests.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from itertools import dropwhile
from pathlib import Path

import pytest

from tests.pages import PAGES, ROOT, blocks, check_printed, steps

BIN = Path(sys.executable).parent
OURS = {"txrocketmq", "mqbroker", "mqnamesrv"}
BY_THEMSELVES = {"docs/ingest.md", "docs/tutorial.md"}
WITH_DOCKER = "container"
"""What the name of a module says that needs an engine; it is run by compat_tests."""
NOT_OURS = {
    "celery", "curl", "docker", "java", "mqadmin", "mvn", "pip", "pre-commit", "python",
    "spark-submit", "uvicorn",
}  # fmt: skip
"""Programs that pages may name and that are not in this repository."""
LANGUAGES = {"console", "sh", "text", "java", "python", "go", "yaml", "sql", "json", "xml"}


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Runs a command line as somebody would who has a server running; gives what it prints."""
    folder = tmp_path
    metrics = _free_port()
    settings = folder / "metrics.conf"
    settings.write_text(f"metricsExporterType=PROM\nmetricsPromExporterPort={metrics}\n")
    command = [str(BIN / "txrocketmq"), "standalone", "--store", "store", "-c", str(settings)]
    free_ports = ["--namesrv-port", "0", "--broker-port", "0"]
    server = subprocess.Popen(
        [*command, *free_ports], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    shown = ""
    for line in server.stdout:
        shown += line
        if "Ctrl-C" in line:
            break
    found = re.search(r"^  name server +(\S+)$", shown, re.MULTILINE)
    assert found is not None, shown
    environment = {
        **os.environ,
        "NAMESRV_ADDR": found.group(1),
        "METRICS": f"127.0.0.1:{metrics}",
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    }

    def run(line: str) -> str:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, f"{line}: {done.stderr}"
        return done.stdout

    yield run
    server.terminate()
    server.communicate(timeout=30)
    assert server.returncode == 0


def test_python_of_the_pages_runs(tmp_path: Path) -> None:
    names = []
    for block in blocks():
        named = re.match(r"# (test_\w+\.py)\n", block.text)
        if block.language != "python" or block.page in BY_THEMSELVES:
            continue
        if named and WITH_DOCKER not in named.group(1):
            (tmp_path / named.group(1)).write_text(block.text, "utf-8")
            names.append(named.group(1))
    assert names
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *names],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout


def test_pages_use_known_languages() -> None:
    unknown = [
        f"{block.page}: {block.language or 'a block without language'}"
        for block in blocks()
        if block.language not in LANGUAGES
    ]
    assert not unknown, unknown


def test_the_readme_has_commands_to_run() -> None:
    assert any(b.page == "README.md" and b.language == "console" for b in blocks())


@pytest.mark.parametrize(
    "page", sorted({b.page for b in blocks() if b.language == "console"} - BY_THEMSELVES)
)
def test_commands_of_a_page(page: str, shell: Callable[[str], str]) -> None:
    for command, wanted in steps(page):
        check_printed(command, wanted, shell(command))


@cache
def _help(program: str, *command: str) -> str:
    words = [str(BIN / program), *command, "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join([program, *command])} --help: {done.stderr}"
    return done.stdout


def _command(program: str, words: list[str]) -> list[str]:
    """The words that name a command, as `topics create` does; none if it is the program itself."""
    if program != "txrocketmq" or words[0].startswith("-"):
        return []
    has_more = (
        len(words) > 1
        and words[1].isalpha()
        and re.search(rf"^  {re.escape(words[1])} ", _help(program, words[0]), re.MULTILINE)
    )
    return words[:2] if has_more else words[:1]


def _targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def _fault(line: str) -> str:
    """What is wrong with a line of shell; empty when nothing is."""
    typed = shlex.split(line, comments=True)
    # Variables of the environment may precede a command.
    program, *words = dropwhile(re.compile(r"[A-Z_]+=").match, typed)
    program = program.removeprefix(".venv/bin/")
    if program == "make":
        names = [word for word in words if "=" not in word and not word.startswith("-")]
        unknown = [word for word in names if word not in _targets()]
        for part in re.findall(r"-k (test_\w+)", line):
            unknown += [] if any(part in name for name in _tests()) else [part]
        return f"no such target or test: {unknown}" if unknown else ""
    if program == "python" and words[0] == "-m":
        return "" if find_spec(words[1]) else f"no such module: {words[1]}"
    if program in NOT_OURS:
        return ""
    if program not in OURS:
        return f"what is {program}?"
    shown = _help(program, *_command(program, words))
    known = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", shown))
    wrong = [word for word in words if word.startswith("-") and word not in {*known, "-"}]
    return f"no such option: {wrong}" if wrong else ""


def test_shown_commands_exist() -> None:
    faults = [
        f"{block.page}: {line.strip()}: {fault}"
        for block in blocks()
        if block.language == "sh"
        for line in block.text.splitlines()
        if line.strip() and (fault := _fault(line))
    ]
    assert not faults, faults


@cache
def _tests() -> set[str]:
    files = (path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    return {name for text in files for name in re.findall(r"def (test_\w+)", text)}


@cache
def _mqadmin() -> set[str]:
    """The commands of mqadmin that the table of docs/mqadmin.md has."""
    table = (ROOT / "docs" / "mqadmin.md").read_text("utf-8")
    return set(re.findall(r"^\| `(\w+)", table, re.MULTILINE))


def _inline(page: Path) -> Iterator[str]:
    """The commands within the sentences of a page."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for span in re.findall(r"`([^`\n]+)`", text):
        program, _, rest = span.partition(" ")
        if rest and program in OURS | {"make", "mqadmin", "python"}:
            yield span


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_within_sentences_exist(page: Path) -> None:
    faults = []
    for line in _inline(page):
        if line.startswith("mqadmin "):
            command = line.split()[1]
            fault = "" if command in _mqadmin() else f"mqadmin has no {command}"
        else:
            fault = _fault(line)
        if fault:
            faults.append(f"{line}: {fault}")
    assert not faults, faults
    least = {"README.md": 9, "CONTRIBUTING.md": 9, "docs/troubleshooting.md": 12}
    assert len(list(_inline(page))) >= least.get(str(page.relative_to(ROOT)), 0)


@pytest.mark.parametrize("unit", ["mqnamesrv.service", "mqbroker.service"])
def test_units_are_what_systemd_takes(tmp_path: Path, unit: str) -> None:
    text = (ROOT / "docs" / "systemd" / unit).read_text("utf-8")
    program = unit.removesuffix(".service")
    command = f"/opt/txrocketmq/bin/{program} "
    assert f"ExecStart={command}-c " in text
    assert "Type=notify\n" in text
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("there is no systemd-analyze")
    file = tmp_path / unit
    file.write_text(text.replace(command, f"{BIN / program} "))
    done = subprocess.run(
        [analyze, "verify", str(file)], capture_output=True, text=True, check=False, timeout=60
    )
    own = [line for line in done.stderr.splitlines() if unit in line]
    assert not own, own
