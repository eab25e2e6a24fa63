# SPDX-License-Identifier: Apache-2.0
"""Runs the shell steps of ``action.yml`` one by one, as a runner of GitHub Actions would."""

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from compat_tests import probe
from compat_tests.image import ROOT

pytestmark = pytest.mark.timeout(600)


class Runner:
    """Runs the steps of the composite action with its files, as the documentation has them."""

    def __init__(self, folder: Path, inputs: Mapping[str, str]) -> None:
        self.action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
        self.inputs = {name: each["default"] for name, each in self.action["inputs"].items()}
        assert inputs.keys() <= self.inputs.keys()
        self.inputs |= inputs
        self.folder = folder
        self.files = {
            name: folder / name for name in ("GITHUB_PATH", "GITHUB_ENV", "GITHUB_OUTPUT")
        }
        self.said = ""

    def run(self, *, is_installed: bool = False) -> int:
        """The exit code of the first step that fails, or 0; the first step installs."""
        for file in self.files.values():
            file.write_text("")
        self.said = ""
        for step in self.action["runs"]["steps"][is_installed:]:
            assert step["shell"] == "bash"
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=self.folder,
                env={**self._environment(), **{k: self._value(v) for k, v in step["env"].items()}},
                capture_output=True,
                text=True,
                check=False,
                timeout=400,
            )
            self.said += done.stdout + done.stderr
            if done.returncode != 0:
                return done.returncode
        return 0

    def pairs(self, name: str) -> dict[str, str]:
        """What the steps wrote into one of the files."""
        return dict(line.split("=", 1) for line in self.files[name].read_text().splitlines())

    def _environment(self) -> dict[str, str]:
        files = {name: str(path) for name, path in self.files.items()}
        return {**os.environ, "RUNNER_TEMP": str(self.folder), **files}

    def _value(self, text: str) -> str:
        """The expressions that the action uses, and no others."""
        expression = re.fullmatch(r"\$\{\{ inputs\.([\w-]+)( \|\| github\.action_path)? \}\}", text)
        assert expression, text
        return self.inputs[expression[1]] or (str(ROOT) if expression[2] else "")


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory, dist: Path) -> Iterator[Runner]:
    (wheel,) = dist.glob("*.whl")
    folder = tmp_path_factory.mktemp("runner")
    yield Runner(folder, {"package": str(wheel)})
    for lock in folder.glob("rocketmq.*/store/abort"):
        with contextlib.suppress(ValueError, ProcessLookupError):
            os.kill(int(lock.read_text().partition(":")[0]), signal.SIGTERM)


def test_it_starts_a_server_for_the_steps_that_follow(runner: Runner) -> None:
    runner.inputs["settings"] = "autoCreateTopicEnable=false\n"
    assert runner.run() == 0, runner.said
    told = runner.pairs("GITHUB_ENV")
    outputs = runner.pairs("GITHUB_OUTPUT")
    assert outputs == {
        "namesrv-addr": told["NAMESRV_ADDR"],
        "broker-addr": told["ROCKETMQ_BROKER_ADDR"],
    }
    assert {f"${{{{ steps.start.outputs.{name} }}}}" for name in outputs} == {
        each["value"] for each in runner.action["outputs"].values()
    }
    port = int(told["ROCKETMQ_BROKER_ADDR"].rpartition(":")[2])
    _, body = probe.request(port, probe.GET_BROKER_CONFIG)
    assert b"autoCreateTopicEnable=false" in body
    (path,) = runner.files["GITHUB_PATH"].read_text().split()
    send = [f"{path}/txrocketmq", "send", "-n", told["NAMESRV_ADDR"], "T", "one"]
    assert subprocess.run(send, capture_output=True, check=False).returncode == 1  # no such topic
    assert "listens on" in Path(told["ROCKETMQ_LOG"]).read_text()


def test_a_server_that_does_not_start_fails_the_step(runner: Runner) -> None:
    runner.inputs["settings"] = "enableDLegerCommitLog=true"
    assert runner.run(is_installed=True) == 1
    assert "::error::txrocketmq did not start" in runner.said
    assert "is not served" in runner.said
