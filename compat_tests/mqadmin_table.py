# SPDX-License-Identifier: Apache-2.0
"""`make mqadmin-table`: every command of mqadmin on ours and on the original, side by side.

    .venv/bin/python -m compat_tests.mqadmin_table [--java local]

Writes what the originals print into golden/, and the table into docs/mqadmin.md.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from compat_tests.engine import Engine, open_java
from compat_tests.jars import RELEASES
from compat_tests.java_client import ClientJvm
from compat_tests.mqadmin import COMMANDS, NOT_RUN, Command, Scene, run_all, verdict
from compat_tests.peers import Broker, NameServer, Origin, Original, Ours, running

GOLDEN = Path(__file__).parent / "golden"
PAGE = Path(__file__).parent.parent / "docs" / "mqadmin.md"
_BEGIN = "<!-- written by compat_tests/mqadmin_table.py; run `make mqadmin-table` -->\n"
_END = "<!-- end of the table -->\n"
_NONE = "-"


def golden(release: str) -> dict[str, list[str]]:
    """Returns what the original of a release has printed, by command."""
    found: dict[str, list[str]] = json.loads(_golden_path(release).read_text())
    return found


def _golden_path(release: str) -> Path:
    return GOLDEN / f"mqadmin-{release}.json"


def outputs(
    origin: Origin, release: str, engine: Engine, folder: Path, commands: Sequence[Command]
) -> dict[str, list[str]]:
    """Returns what the mqadmin of a release prints about servers of this origin."""
    names = NameServer(origin, folder / "namesrv")
    defaults = dict.fromkeys(origin.broker_settings, "true")  # they are printed
    broker = Broker(origin, folder / "broker", names, "broker-a", defaults)
    with running(names, broker):
        jvm = ClientJvm(release, engine, folder / "jvm", is_silent=True)
        try:
            known = set(jvm.call("mqadmin_names"))
            unknown = known - {each.name for each in COMMANDS} - set(NOT_RUN)
            assert not unknown, f"mqadmin {release} has commands that are not run: {unknown}"
            scene = Scene(jvm, broker, folder / "files")
            scene.build()
            return run_all(scene, [each for each in commands if each.name in known])
        finally:
            jvm.kill()


def verdicts(page: str) -> dict[tuple[str, str], str]:
    """Returns what the table of the page says, by release and command."""
    found = {}
    for line in page[page.index(_BEGIN) : page.index(_END)].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            for release, said in zip(RELEASES, cells[1:], strict=False):
                found[release, cells[0].strip("`")] = said
    return found


def table(rows: dict[str, dict[str, str]]) -> str:
    """Returns the table of the page; `rows` are verdicts by command and release."""
    lines = [f"| mqadmin | {' | '.join(RELEASES)} | why |", "|---|---|---|---|"]
    commands = {each.line: each for each in COMMANDS}
    for line, row in rows.items():
        command = commands[line]
        reasons = {
            command.reason(release) for release, said in row.items() if said not in ("same", _NONE)
        }
        said = " | ".join(row.get(release, _NONE) for release in RELEASES)
        lines.append(f"| `{line}` | {said} | {'; '.join(sorted(filter(None, reasons)))} |")
    for name, why in NOT_RUN.items():
        lines.append(f"| `{name}` | {' | '.join('not run' for _ in RELEASES)} | {why} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Runs all commands, and writes the files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--java", choices=("container", "local"), default="container")
    java = parser.parse_args().java
    rows: dict[str, dict[str, str]] = {each.line: {} for each in COMMANDS}
    with tempfile.TemporaryDirectory() as temporary:
        engine = open_java(java, Path(temporary), print)
        try:
            for release in RELEASES:
                folder = Path(temporary) / release
                original = Original(release, engine)
                theirs = outputs(original, release, engine, folder / "original", COMMANDS)
                GOLDEN.mkdir(exist_ok=True)
                text = json.dumps(theirs, indent=1, ensure_ascii=False)
                _golden_path(release).write_text(f"{text}\n")
                ours = outputs(Ours(), release, engine, folder / "ours", COMMANDS)
                for line, lines in ours.items():
                    rows[line][release] = verdict(lines, theirs[line])
        finally:
            engine.close()
    page = PAGE.read_text()
    start, end = page.index(_BEGIN) + len(_BEGIN), page.index(_END)
    PAGE.write_text(f"{page[:start]}\n{table(rows)}\n{page[end:]}")
    for (release, line), said in verdicts(PAGE.read_text()).items():
        command = next((each for each in COMMANDS if each.line == line), None)
        if said == "differs" and command is not None and not command.reason(release):
            print(f"differs from {release}, and nothing says why: {line}")


if __name__ == "__main__":
    main()
