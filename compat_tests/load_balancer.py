# SPDX-License-Identifier: Apache-2.0
"""HAProxy, from Debian's package, in front of servers; it tells them whose each connection is."""

import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from compat_tests.debian import Say, install
from compat_tests.probe import connected

SOURCE = "127.0.0.9"
"""The address from which it connects to the servers."""
_STARTS_S = 10.0


class LoadBalancer:
    """One HAProxy; `ports` gives the port of the server behind each of its own."""

    def __init__(self, folder: Path, ports: Mapping[int, int], header: str, say: Say) -> None:
        """`header` is the option with which HAProxy sends a header, such as send-proxy-v2.

        Raises NotInstalled.
        """
        if shutil.which("haproxy") is None:
            install("haproxy", say)
        folder.mkdir(parents=True, exist_ok=True)
        self._ports = ports
        self._file = folder / "haproxy.cfg"
        self._log = folder / "haproxy.log"
        lines = [
            "defaults",
            "  mode tcp",
            "  timeout connect 5s",
            "  timeout client 60s",
            "  timeout server 60s",
            f"  source {SOURCE}",
        ]
        for own, behind in ports.items():
            lines += [
                f"listen port-{own}",
                f"  bind 127.0.0.1:{own}",
                f"  server only 127.0.0.1:{behind} {header}",
            ]
        self._file.write_text("\n".join(lines) + "\n")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, and waits until its ports are open. Raises TimeoutError with its log."""
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["haproxy", "-db", "-f", str(self._file)], stdout=log, stderr=subprocess.STDOUT
            )
        deadline = time.monotonic() + _STARTS_S
        for port in self._ports:
            while not self._is_open(port):
                if time.monotonic() > deadline or self._process.poll() is not None:
                    self.close()
                    raise TimeoutError(f"HAProxy does not start: {self._log.read_text()}")
                time.sleep(0.05)

    def close(self) -> None:
        """Ends it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _is_open(self, port: int) -> bool:
        try:
            with connected(port):
                return True
        except OSError:
            return False
