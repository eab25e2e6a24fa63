# SPDX-License-Identifier: Apache-2.0
"""Real servers that may not have the address space that they need."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.process.test_bad_peers import MIB, Peer, frame, message
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.protocol import offset
from txrocketmq.remoting.protocol.offset import GetMaxOffsetRequestHeader
from txrocketmq.testing.server import running

LIMIT_S = 30
LOAD_S = 4
PEERS = 8
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]) << 20, -1))
sys.argv[1:2] = []
from txrocketmq.cli.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize("limit_mib", [40, 46, 50, 53, 56, 60, 70])
def test_a_start_is_refused_with_a_sentence_or_stops_in_order(
    tmp_path: Path, limit_mib: int
) -> None:
    ready = tmp_path / "ready"
    ports = ("--namesrv-port", "0", "--broker-port", "0")
    flags = (*ports, "--store", str(tmp_path / "store"), "--ready-file", str(ready))
    process = subprocess.Popen(
        [sys.executable, "-c", LIMITED, str(limit_mib), "standalone", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    deadline = time.monotonic() + LIMIT_S
    try:
        while process.poll() is None and not ready.exists() and time.monotonic() < deadline:
            time.sleep(0.02)  # another process: there is nothing that could tell
        was_ready = ready.exists()
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
        process.wait()
    if process.returncode:
        assert process.returncode == 1, said
        assert said.splitlines()[-1].startswith("txrocketmq standalone: there is not enough memory")
        assert "Traceback" not in said
    else:
        assert was_ready
        assert "broker broker-a has stopped" in said
        assert "cannot join thread" not in said


def load(address: str, body: bytes, end: float, acknowledged: Counter[str], number: int) -> None:
    """Sends until the end; comes again when it is refused."""
    peer: Peer | None = None
    for count in range(1_000_000):
        if time.monotonic() > end:
            return
        topic = f"T{number}-{count % 9}"
        try:
            peer = peer or Peer(address)
            if peer.ask(message(topic, body)).code == ResponseCode.SUCCESS:
                acknowledged[topic] += 1
        except (AssertionError, OSError):
            peer = None
            time.sleep(0.02)


@pytest.mark.parametrize(
    ("more_kib", "body_bytes", "flush"),
    [
        (256, 8_000, "ASYNC_FLUSH"),
        (8 << 10, 900_000, "SYNC_FLUSH"),
        (3 << 10, 3_000_000, "ASYNC_FLUSH"),
    ],
)
def test_a_server_under_load_lives_on_without_address_space_and_loses_nothing(
    more_kib: int, body_bytes: int, flush: str
) -> None:
    acknowledged: Counter[str] = Counter()
    with running(
        flushDiskType=flush, mappedFileSizeCommitLog=4 * MIB, mappedFileSizeConsumeQueue=6_000
    ) as server:
        assert Peer(server.broker_addr).ask(message("T", b"first")).code == ResponseCode.SUCCESS
        acknowledged["T"] += 1
        used = int(Path(f"/proc/{server.pid}/statm").read_text().split()[0])
        limit = used * resource.getpagesize() + more_kib * 1024
        resource.prlimit(server.pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        end = time.monotonic() + LOAD_S
        peers = [
            threading.Thread(
                target=load,
                args=(server.broker_addr, bytes(body_bytes), end, acknowledged, number),
            )
            for number in range(PEERS)
        ]
        for each in peers:
            each.start()
        for each in peers:
            each.join(LIMIT_S)
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(server.pid, resource.RLIMIT_AS, unlimited)
        time.sleep(1.2)  # until the reserve is held again
        peer = Peer(server.broker_addr)
        assert peer.ask(message("T", b"last")).code == ResponseCode.SUCCESS
        acknowledged["T"] += 1
        for topic, count in acknowledged.items():
            header = GetMaxOffsetRequestHeader(topic=topic, queue_id=0)
            answer = peer.ask(frame(offset.GET_MAX_OFFSET, header))
            assert int((answer.ext_fields or {})["offset"]) >= count
        assert server.log_path.read_text("utf-8").count("there is no memory for some requests") < 20
        process = server._process._process
    assert process.returncode == 0
