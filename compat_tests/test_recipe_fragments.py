# SPDX-License-Identifier: Apache-2.0
"""The parts of programs in docs/testing.md that are no whole recipes, compiled: Java and Go."""

import re
import shutil
from pathlib import Path

import pytest

from compat_tests.image import ROOT
from compat_tests.jars import (
    RELEASES,
    JarsUnavailable,
    compiler,
    grpc_client,
    resolve,
    with_testcontainers,
)
from compat_tests.test_recipes import recipes, run

pytestmark = pytest.mark.timeout(1200)

_CLIENTS = Path(__file__).parent / "clients"
_JAVA = """\
import org.apache.rocketmq.client.apis.ClientConfiguration;
"""
_APACHE = "github.com/apache"
_GO = f"""\
import (
	rmq_client "{_APACHE}/rocketmq-clients/golang/v5"
	"{_APACHE}/rocketmq-clients/golang/v5/credentials"
)

var endpoint string
"""
"""What stands before the fragment in Go."""


def fragments(language: str) -> list[str]:
    """Returns the blocks of this language that do not begin with the name of a file."""
    page = (ROOT / "docs" / "testing.md").read_text("utf-8")
    found = re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [text for text in found if not re.match(r"// \S+\.\w+\n", text)]


def test_java(tmp_path: Path) -> None:
    java, found = shutil.which("java"), fragments("java")
    if java is None:
        pytest.skip("there is no java on this machine")
    try:
        folders = with_testcontainers(), resolve(RELEASES[0], "client"), grpc_client()
        ecj = compiler()
    except JarsUnavailable as error:
        pytest.skip(str(error))
    assert any("setEndpoints" in text for text in found)
    names = [*recipes(tmp_path, "java"), "Fragments.java"]
    run_it = "static void run(RocketMQContainer rocketmq) throws Exception"
    classes = (f"class Fragment{n} {{ {run_it} {{\n{text}}} }}\n" for n, text in enumerate(found))
    (tmp_path / "Fragments.java").write_text(_JAVA + "".join(classes), "utf-8")
    jars = ":".join(str(jar) for folder in folders for jar in sorted(folder.glob("*.jar")))
    options = ["--release", "17", "-nowarn", "-proc:none", "-cp", jars]
    run([java, "-jar", ecj, *options, *names], tmp_path)


def test_go(tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("there is no go on this machine")
    (text,) = fragments("go")
    made = f"package main\n\n{_GO}\nvar _, _ = {text}\nfunc main() {{}}\n"
    (tmp_path / "main.go").write_text(made, "utf-8")
    for name in ("go.mod", "go.sum"):
        shutil.copy(_CLIENTS / "grpc_go" / name, tmp_path)
    run([go, "build", "-buildvcs=false", "-o", "fragment", "."], tmp_path)
