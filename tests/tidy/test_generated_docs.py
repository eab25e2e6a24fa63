# SPDX-License-Identifier: Apache-2.0
"""The pages that docs/generate_*.py write are what they would write now."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
GENERATORS = sorted(path.stem for path in (ROOT / "docs").glob("generate_*.py"))


def _generator(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module(f"docs.{name}")


def test_there_are_generators() -> None:
    assert {"generate_config", "generate_request_codes"} <= set(GENERATORS)


@pytest.mark.parametrize("name", GENERATORS)
def test_pages_are_current(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pages: dict[Path, str] = _generator(name, monkeypatch).pages()
    assert pages, "it writes no page"
    for path, text in pages.items():
        assert path.exists(), f"{path.name} is not there; run: make docs"
        assert path.read_text("utf-8") == text, f"{path.name} is out of date; run: make docs"


def test_every_served_code_is_one_of_the_original(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the page says of the original covers all that is served here."""
    codes = _generator("generate_request_codes", monkeypatch)
    known = frozenset().union(*(c for who in codes.ORIGINAL.values() for c in who.values()))
    assert set(codes.served()) <= known
    assert set(codes.PARTLY) <= set(codes.served())


def test_the_plot_is_of_the_same_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmarks = _generator("generate_benchmarks", monkeypatch)
    digest = benchmarks.digest(json.loads(benchmarks.RESULTS.read_text("utf-8")))
    assert digest in benchmarks.PLOT.read_text("utf-8"), "run: python -m docs.generate_benchmarks"


def test_java_classes_are_found_in_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    java = _generator("generate_map_from_java", monkeypatch)
    docstring = """Does what Java's StatsService does not.

    Counterpart of
    timer.Slot, CommitLog.append, flush of FlushService, and MappedFile.PutResult.

    Java: has no counterpart; GroupService waits.
    """
    assert list(java.classes_of(docstring)) == [
        ("Slot", True),
        ("CommitLog", False),
        ("FlushService", False),
        ("MappedFile", False),
        ("PutResult", True),
    ]


def test_modules_of_whole_java_classes_come_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _generator("generate_map_from_java", monkeypatch).found()
    assert found["TimerWheel"] == [Path("broker/store/timers/timer_wheel.py")]
    assert Path("broker/store/log/commit_log.py") in found["CommitLog"]
    assert Path("broker/store/upkeep/retention.py") not in found["DefaultMessageStore"]
    assert len(found) > 250


def test_what_is_said_to_be_missing_is_found_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    java = _generator("generate_map_from_java", monkeypatch)
    missing = " ".join(classes for rows in java.MISSING.values() for classes in rows)
    assert not set(missing.replace(",", "").split()) & set(java.found())
