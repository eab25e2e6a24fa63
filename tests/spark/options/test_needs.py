# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from txrocketmq.spark.arrow.errors import SparkSourceError
from txrocketmq.spark.options import needs
from txrocketmq.spark.options.needs import ALSO, LEAST, check_packages, check_pyspark, missing

ROOT = Path(__file__).parents[3]
GOOD = {"numpy": "2.1.0", "pyarrow": "18.0.0"} | dict.fromkeys(ALSO, "1.0")


def test_versions_are_those_of_the_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extra = [Requirement(text) for text in project["optional-dependencies"]["spark-source"]]
    assert {each.name: str(each.specifier) for each in extra} == {
        name: ">=" + ".".join(str(part) for part in least) for name, least in LEAST.items()
    }, "and no PySpark, which a platform brings"
    assert set(ALSO) < {Requirement(text).name for text in project["dependencies"]}


def test_what_is_missing() -> None:
    check_packages()  # what runs the tests has all
    assert missing(GOOD.get) == []
    assert missing({**GOOD, "pyarrow": "17.0.0.dev3"}.get) == [
        "pyarrow 17.0.0.dev3 instead of 18 or later"
    ]
    assert missing({**GOOD, "numpy": "unknown"}.get) == [], "it is there, by whatever way"
    assert missing(lambda _: None)[:2] == ["no numpy", "no pyarrow"]


def test_the_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "missing", lambda: ["no numpy"])
    with pytest.raises(SparkSourceError, match="machine, has no numpy: pip install 'txrocketmq.sp"):
        check_packages()


@pytest.mark.parametrize(("version", "is_enough"), [("4.0.2", False), ("4.1.0+dbr", True)])
def test_pyspark(monkeypatch: pytest.MonkeyPatch, version: str, is_enough: bool) -> None:
    monkeypatch.setattr(needs, "version_of", lambda _: version)
    check_pyspark("a batch")
    if is_enough:
        check_pyspark("a stream", (4, 1))
    else:
        with pytest.raises(SparkSourceError, match=r"a stream needs PySpark 4.1 or later; this is"):
            check_pyspark("a stream", (4, 1))


def test_a_pyspark_that_is_only_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "version_of", lambda _: None)
    check_pyspark("a batch")
