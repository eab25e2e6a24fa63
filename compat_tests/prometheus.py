# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus that watches servers: Debian's, unpacked into the cache but not installed.

It scrapes each second; ``query`` asks it what a panel of Grafana asks it.
"""

import contextlib
import json
import math
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from compat_tests import probe
from compat_tests.cache import cache_root, exclusive
from compat_tests.debian import NotInstalled
from compat_tests.scene import poll

RATE_INTERVAL: str = "10s"
_TIMEOUT_S = 300


class Series(NamedTuple):
    """The result of a query for one set of labels: times in seconds, with their values."""

    labels: dict[str, str]
    values: list[tuple[float, float]]

    @property
    def is_finite(self) -> bool:
        """Whether any value can be drawn."""
        return any(math.isfinite(value) for _, value in self.values)


class BadQuery(Exception):
    """Prometheus does not accept an expression; the message is its own."""


def program() -> Path:
    """Returns the program, unpacked if it was not before. Raises NotInstalled."""
    found = shutil.which("prometheus")
    if found is not None:
        return Path(found)
    folder = cache_root() / "prometheus"
    path = folder / "usr" / "bin" / "prometheus"
    with exclusive("prometheus"):
        if not path.exists():
            _unpack(folder)
    return path


def _unpack(folder: Path) -> None:
    """Unpacks the package. Raises NotInstalled."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise NotInstalled("prometheus is not installed, and this is no Debian to get it from")
    folder.mkdir(exist_ok=True)
    done: subprocess.CompletedProcess[str] | None = None
    for command in (
        ["apt-get", "download", "-qq", "prometheus"],
        ["apt-get", "update", "-qq"],
        ["apt-get", "download", "-qq", "prometheus"],
    ):
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
        )
        packages = sorted(folder.glob("prometheus_*.deb"))
        if packages:
            subprocess.run(["dpkg", "-x", str(packages[-1]), str(folder)], check=True)
            for each in packages:
                each.unlink()
            return
    raise NotInstalled(f"apt-get has no prometheus: {done.stderr.strip()[-500:] if done else ''}")


class Prometheus:
    """A running Prometheus; ``port`` is its own port."""

    def __init__(self, port: int) -> None:
        self.port = port

    def query(self, expression: str, seconds: int) -> list[Series]:
        """Returns the values of the last seconds, one for each second. Raises BadQuery."""
        now = time.time()
        return self._ask("query_range", query=expression, start=now - seconds, end=now, step=1)

    def label_values(self, name: str, of: str) -> list[str]:
        """Returns what ``label_values(of, name)`` of Grafana returns."""
        answer = self._get(f"label/{name}/values?{urllib.parse.urlencode({'match[]': of})}")
        assert isinstance(answer, list)
        return answer

    def targets(self) -> dict[str, str]:
        """Returns the last error of each target, by address; empty for none."""
        answer = self._get("targets")
        assert isinstance(answer, dict)
        return {
            each["labels"]["instance"]: "" if each["health"] == "up" else str(each["lastError"])
            for each in answer["activeTargets"]
        }

    def _ask(self, what: str, **values: object) -> list[Series]:
        answer = self._get(f"{what}?{urllib.parse.urlencode(values)}")
        assert isinstance(answer, dict)
        return [
            Series(each["metric"], [(at, float(value)) for at, value in each["values"]])
            for each in answer["result"]
        ]

    def _get(self, path: str) -> object:
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise BadQuery(json.load(error)["error"]) from None

    def is_up(self) -> bool:
        """Returns whether it answers yet."""
        with contextlib.suppress(OSError, ValueError):  # while it starts it says so in plain text
            self._get("targets")
            return True
        return False


@contextlib.contextmanager
def watching(folder: Path, targets: Mapping[str, int]) -> Iterator[Prometheus]:
    """Runs one that scrapes these ports by job, and itself. Raises NotInstalled."""
    path, port = program(), probe.free_ports([0])
    jobs = [
        {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}
        for job, target in {**targets, "prometheus": port}.items()
    ]
    settings = {"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}
    folder.mkdir()
    file = folder / "prometheus.yml"
    file.write_text(json.dumps(settings))  # JSON is YAML, too
    command = [
        str(path), f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        found = Prometheus(port)
        poll(found.is_up, "Prometheus answers", 60)
        yield found
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
