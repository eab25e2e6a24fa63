# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

NOWHERE = "/dev/null/store"
"""A start that fails when all is imported."""
STARTS = {
    "mqnamesrv": "from txrocketmq.namesrv.__main__ import main; code = main(['-c', {file!r}])",
    "mqbroker": "from txrocketmq.broker.__main__ import main; code = main(['-c', {file!r}])",
    "standalone": "from txrocketmq.cli.__main__ import main\n"
    f"code = main(['standalone', '--store', '{NOWHERE}'])",
}
PRINT = """
import sys
print(code, sorted(name for name in ("twisted", "OpenSSL", "cryptography") if name in sys.modules
                   and sys.modules[name] is not None))
"""


def said(program: str) -> str:
    """The last line that a program prints, in a Python of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("name", STARTS)
def test_servers_are_started_without_it(name: str, tmp_path: Path) -> None:
    file = tmp_path / "server.conf"
    file.write_text(f"storePathRootDir={NOWHERE}\nbindAddress=203.0.113.1\nlistenPort=0\n")
    assert said(STARTS[name].format(file=str(file)) + PRINT) == "1 ['twisted']"


def test_what_has_twisted_already_keeps_it() -> None:
    program = """
from twisted.protocols.tls import TLSMemoryBIOFactory
from txrocketmq.remoting.process.without_pyopenssl import leave_out_pyopenssl
leave_out_pyopenssl()
code = 0
"""
    assert said(program + PRINT) == "0 ['OpenSSL', 'cryptography', 'twisted']"


def test_clients_encrypt_without_it() -> None:
    program = """
import sys
sys.modules["OpenSSL"] = sys.modules["cryptography"] = None  # as where they are not installed
from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.core.instance import ClientInstance
ClientInstance(ClientConfig(namesrv_addr="127.0.0.1:1", use_tls=True))
code = 0
"""
    assert said(program + PRINT) == "0 ['twisted']"
