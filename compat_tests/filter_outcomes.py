# SPDX-License-Identifier: Apache-2.0
"""Evaluates expressions with the classes of the original's SQL92 filter, in one JVM.

`python -m compat_tests.filter_outcomes COUNT SEED` writes that many random cases with the outcomes
of both releases, one JSON line each; it has made tests/golden/filter/outcomes.jsonl. An outcome is
true, false or null, as the expression evaluates, "throws" if that fails, which is no match, or
"refused" if the expression does not compile.
"""

import base64
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from compat_tests.engine import Engine, open_java
from compat_tests.filter_cases import Case, cases
from compat_tests.jars import RELEASES, resolve
from compat_tests.java_client import ClientGone, compile_program

_SOURCES = Path(__file__).parent / "clients" / "java" / "filter"
_TIMEOUT_S = 300.0
_OUTCOMES = {"true": True, "false": False, "null": None}

Outcome = bool | str | None


def outcomes(release: str, engine: Engine, folder: Path, asked: Sequence[Case]) -> list[Outcome]:
    """Returns the outcome of each case in a release; `folder` has to be visible to the engine."""
    classes = compile_program(release, engine, _SOURCES, "server", "Evaluate")
    given, found = (folder / f"{name}-{time.monotonic_ns()}" for name in ("cases", "outcomes"))
    given.write_text("".join(f"{_line(case)}\n" for case in asked))
    jars = f"{classes}:{resolve(release, 'server')}/*"
    process = engine.start(
        f"filter-{release}", ["-Xmx512m", "-cp", jars, "Evaluate", str(given), str(found)], {}
    )
    deadline = time.monotonic() + _TIMEOUT_S
    while process.alive() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    lines = found.read_text().splitlines() if found.exists() else []
    if lines[-1:] != ["end"]:
        raise ClientGone(f"the filter of {release} did not do it:\n{process.log()}")
    return [_OUTCOMES.get(line, line) for line in lines[:-1]]


def _line(case: Case) -> str:
    texts = [case.expression, *(text for pair in case.properties.items() for text in pair)]
    return "\t".join(base64.b64encode(text.encode()).decode() for text in texts)


def golden_lines(asked: Sequence[Case], by_release: Iterable[Sequence[Outcome]]) -> str:
    """Returns the cases with the outcomes of both releases, one JSON line each."""
    return "".join(
        json.dumps(
            [case.expression, case.properties, dict(zip(RELEASES, found, strict=True))],
            ensure_ascii=False,
        )
        + "\n"
        for case, found in zip(asked, zip(*by_release, strict=True), strict=True)
    )


def main() -> None:
    """Writes the cases as the module says."""
    count, seed = (int(argument) for argument in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        engine = open_java("local", Path(folder), print)
        asked = cases(seed, count)
        found = [outcomes(release, engine, Path(folder), asked) for release in RELEASES]
    sys.stdout.write(golden_lines(asked, found))


if __name__ == "__main__":
    main()
