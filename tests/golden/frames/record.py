# SPDX-License-Identifier: Apache-2.0
"""Records the frames between a server and its clients: `record.py LISTEN TARGET FILE`.

Listens on a port of this machine, passes everything on to another one, and writes each frame to a
file as it passes: one JSON object a line, {"peer": number of the connection, "from": "client" or
"server", "frame": base64, its length included}. Ends with SIGTERM.
"""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import sys
from itertools import count
from pathlib import Path
from typing import TextIO

_HOST = "127.0.0.1"


def whole_frames(buffer: bytearray) -> list[bytes]:
    """Removes the whole frames from the front of a buffer, and returns them."""
    frames = []
    while len(buffer) >= 4:
        end = 4 + int.from_bytes(buffer[:4])
        if len(buffer) < end:
            break
        frames.append(bytes(buffer[:end]))
        del buffer[:end]
    return frames


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, said: dict[str, object], out: TextIO
) -> None:
    buffer = bytearray()
    try:
        while data := await reader.read(65_536):
            buffer += data
            for frame in whole_frames(buffer):
                print(json.dumps({**said, "frame": base64.b64encode(frame).decode()}), file=out)
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass  # either end may close at any time
    finally:
        writer.close()


async def record(listen_port: int, target_port: int, out: TextIO) -> None:
    """Records until SIGTERM."""
    peers = count(1)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = next(peers)
        try:
            target_reader, target_writer = await asyncio.open_connection(_HOST, target_port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(
            _pass_on(reader, target_writer, {"peer": peer, "from": "client"}, out),
            _pass_on(target_reader, writer, {"peer": peer, "from": "server"}, out),
        )

    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with await asyncio.start_server(accept, _HOST, listen_port):
        await stopped.wait()


def main() -> None:
    """Reads the arguments and records."""
    with Path(sys.argv[3]).open("w", encoding="utf-8", buffering=1) as out:
        asyncio.run(record(int(sys.argv[1]), int(sys.argv[2]), out))


if __name__ == "__main__":
    main()
