# SPDX-License-Identifier: Apache-2.0
"""Deletes topics of a store that is being written, as the original's broker does."""

from __future__ import annotations

import shutil

from tests.spark.stores import StoreWriter


def delete_topic(writer: StoreWriter, topic: str, *, noted: bool = False) -> None:
    """Removes a topic and its queues; its messages stay in the log.

    If the topic is put again, its queues begin at 0. `noted`: as a broker of txrocketmq does it.
    """
    for kind in ("consumequeue", "batchconsumequeue", "consumequeue_ext"):
        shutil.rmtree(writer.root / kind / topic, ignore_errors=True)
    for offsets in (writer._next, writer._batch_units, writer._ext_ends):
        for queue in [each for each in offsets if each[0] == topic]:
            del offsets[queue]
    writer._topics.pop(topic, None)
    writer.write_config()
    if noted:
        (writer.root / "deleted").mkdir(exist_ok=True)
        (writer.root / "deleted" / topic).write_text(f"{writer.end:020d}")
