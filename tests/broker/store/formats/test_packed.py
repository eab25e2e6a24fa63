# SPDX-License-Identifier: Apache-2.0
"""The kernels have what is declared of them."""

from __future__ import annotations

import random

from tests.broker.kernel.random_frames import Frames
from tests.broker.kernel.test_header_holes import header_of
from tests.broker.kernel.two_brokers import with_each_kernel
from txrocketmq.broker.kernel.chosen import Kernel
from txrocketmq.broker.store.formats.packed import PackedRows, SendRun
from txrocketmq.remoting.message import record


def declared(protocol: type) -> set[str]:
    """The names in a declaration."""
    return {name for name in vars(protocol) if name == "__len__" or not name.startswith("_")}


@with_each_kernel
def test_rows_and_runs_have_every_name(kernel: Kernel) -> None:
    frame = Frames(random.Random(1)).usual(e="1")
    table = kernel.new_table([], [], [], b"")
    queue = table.add_queue("queue", b"\6orders", record.MAGIC_V1, 1)
    assert table.learn(*header_of(frame), queue, False, False, 0, 0, 0, 310, None, 0, None)
    run, rows = table.take(frame, 0), kernel.new_rows()
    assert {name for name in declared(SendRun) if not hasattr(run, name)} == set()
    assert {name for name in declared(PackedRows) if not hasattr(rows, name)} == set()
