# SPDX-License-Identifier: Apache-2.0
"""What shells ask, and the script that makes them ask."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from txrocketmq.cli.__main__ import COMMANDS, COMPLETE
from txrocketmq.cli.__main__ import main as command
from txrocketmq.cli.completion import main
from txrocketmq.cli.context_file import Context, ContextFile, contexts_path
from txrocketmq.cli.names import Names


def answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str
) -> set[str]:
    monkeypatch.setenv(COMPLETE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    assert command([]) == 0
    return {line.partition(",")[2] for line in capsys.readouterr().out.splitlines() if line}


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("txrocketmq top", {"topics"}),
        ("txrocketmq ", set(COMMANDS)),
        ("txrocketmq topics cr", {"create"}),
        ("txrocketmq offsets reset --ba", {"--back-only"}),
        ("txrocketmq topics create --perm r", {"rw", "r"}),
        ("txrocketmq send --b", {"--batch", "--body-file"}),
        ("txrocketmq produce --ba", {"--batch"}),
        ("txrocketmq send T --transaction c", {"commit"}),
        ("txrocketmq store r", {"repair"}),
        ("txrocketmq standalone --log-f", {"--log-file", "--log-format"}),
        ("txrocketmq standalone --log-format j", {"json"}),
        ("txrocketmq ingest --store a --out b --ver", {"--verify", "--verify-only"}),
        ("txrocketmq report --store a --on", {"--only"}),
        ("txrocketmq nothing x", set()),
        ("txrocketmq topics show Or", {"Orders"}),
        ("txrocketmq tail Or", {"Orders"}),
        ("txrocketmq send O", {"Orders"}),
        ("txrocketmq lag b", {"billing"}),
        ("txrocketmq consume Orders -g b", {"billing"}),
        ("txrocketmq dead-letters resend b", {"billing"}),
        ("txrocketmq offsets set billing Orders br", {"broker-a"}),
        ("txrocketmq topics list -c D", {"DefaultCluster"}),
        ("txrocketmq brokers show --namesrv a:1 br", {"broker-a"}),
        ("txrocketmq topics list --context d", {"dev"}),
        ("txrocketmq contexts use d", {"dev"}),
    ],
)
def test_how_a_line_may_go_on(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    wanted: set[str],
) -> None:
    kinds = {"topics": ["Orders"], "groups": ["billing"], "brokers": ["broker-a"],
             "clusters": ["DefaultCluster"]}  # fmt: skip
    monkeypatch.setattr(Names, "get", lambda _, kind: kinds[kind])
    ContextFile(contexts_path()).with_context("dev", Context(namesrv="h:1")).write()
    assert answers(monkeypatch, capsys, words) == wanted


def test_names_are_told_without_importing_what_they_name() -> None:
    imports = "import sys; from txrocketmq.cli.__main__ import main"
    code = f"{imports}; main(); sys.exit('twisted' in sys.modules)"
    asked = {COMPLETE: "bash_complete", "COMP_WORDS": "txrocketmq ", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **asked}, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout.split()) == (
        0,
        [f"plain,{name}".encode() for name in COMMANDS],
    )


def test_a_question_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMPLETE, "bash_source")
    assert command([]) == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([shell]) == 0
    assert COMPLETE in capsys.readouterr().out
    assert main(["tcsh"]) == 2


def test_bash_takes_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    main(["bash"])
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out, "utf-8")
    ask = (
        f"export PATH={Path(sys.executable).parent}:$PATH; source {script};"
        " COMP_WORDS=(txrocketmq topics de); COMP_CWORD=2; _txrocketmq_completion txrocketmq;"
        ' echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run([bash, "-c", ask], capture_output=True, text=True, check=False)
    assert done.stdout == "delete\n", done.stderr
