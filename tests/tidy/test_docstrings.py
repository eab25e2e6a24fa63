# SPDX-License-Identifier: Apache-2.0
"""Docstrings read well: no one or two words stand alone on a second line."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

WORDS = 2
ALLOWED = {
    "broker/cluster/outer_api.py",
    "broker/cluster/topic_routes.py",
    "broker/delays/due_message.py",
    "broker/delays/schedule.py",
    "broker/filter/consumer_filters.py",
    "broker/filter/expression.py",
    "broker/intake/after_durable.py",
    "broker/intake/inner_message.py",
    "broker/intake/transforms/inner_batch.py",
    "broker/intake/transforms/multi_dispatch.py",
    "broker/journal.py",
    "broker/metrics.py",
    "broker/parts.py",
    "broker/pop/check_points.py",
    "broker/pop/in_flight.py",
    "broker/pop/messages.py",
    "broker/pop/metrics.py",
    "broker/pop/order_info.py",
    "broker/pop/polling.py",
    "broker/pop/queues.py",
    "broker/pop/records.py",
    "broker/pop/replaced_check_points.py",
    "broker/pop/revive.py",
    "broker/processors/admin/admin_progress.py",
    "broker/processors/client/heartbeat.py",
    "broker/processors/pop/ack_message.py",
    "broker/processors/pull/offset.py",
    "broker/processors/send/end_transaction.py",
    "broker/processors/send/reply_message.py",
    "broker/processors/send/send_answers.py",
    "broker/processors/send/send_back.py",
    "broker/processors/send/send_checks.py",
    "broker/processors/send/send_message.py",
    "broker/processors/send/send_places.py",
    "broker/pulls/broadcast_offsets.py",
    "broker/pulls/long_polling.py",
    "broker/store/check/check.py",
    "broker/store/check/stretches.py",
    "broker/store/disk/in_memory.py",
    "broker/store/disk/steps.py",
    "broker/store/formats/put_message.py",
    "broker/store/get/cold_parts.py",
    "broker/store/get/get_message.py",
    "broker/store/get/get_result.py",
    "broker/store/get/stored_messages.py",
    "broker/store/log/commit_log.py",
    "broker/store/log/commit_point.py",
    "broker/store/log/log_walk.py",
    "broker/store/log/multi_dispatch.py",
    "broker/store/message_store.py",
    "broker/store/queues/batch_queue.py",
    "broker/store/upkeep/reput.py",
    "broker/store/upkeep/retention.py",
    "broker/tables/attributes.py",
    "broker/tables/clients.py",
    "broker/tables/group_changes.py",
    "broker/tables/offset.py",
    "broker/tables/queue_locks.py",
    "broker/tables/stats.py",
    "broker/tables/subscription.py",
    "broker/tables/topic.py",
    "broker/timer/delivery.py",
    "broker/timer/dequeue.py",
    "broker/timer/enqueue.py",
    "broker/timer/progress.py",
    "broker/timer/timer_store.py",
    "broker/timer/timers.py",
    "broker/transaction/check.py",
    "broker/transaction/end_marks.py",
    "broker/transaction/half_message.py",
    "broker/transaction/half_queue.py",
    "broker/transaction/moves.py",
    "broker/transaction/question.py",
    "broker/work/clock_steps.py",
    "broker/work/drafts.py",
    "broker/work/encoded_table.py",
    "broker/work/json_file.py",
    "broker/work/paging.py",
    "broker/work/saving.py",
    "broker/work/walks.py",
    "client/producer/send/parcel.py",
    "namesrv/metrics.py",
    "remoting/call.py",
    "remoting/codes.py",
    "remoting/dispatch.py",
    "remoting/frame/connection.py",
    "remoting/frame/frame.py",
    "remoting/protocol/send.py",
    "remoting/transport/client.py",
    "remoting/transport/held_bytes.py",
    "remoting/transport/peer.py",
    "remoting/transport/server.py",
}
"""Modules that have such docstrings. This list may only become shorter."""


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Strings that stand alone: docstrings, also those of attributes and constants."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.value


def _has_orphans(text: str) -> bool:
    """Whether the first paragraph has two lines, and the second one only a word or two."""
    lines = text.strip("\n").partition("\n\n")[0].rstrip().split("\n")
    return len(lines) == 2 and len(lines[1].split()) <= WORDS


def test_no_words_stand_alone(
    trees: dict[Path, ast.Module], listed: Callable[[list[str]], str]
) -> None:
    """Such a sentence is shortened, or says something more."""
    found = [
        (str(path), f"{path}:{docstring.lineno} {docstring.value!r}")
        for path, tree in trees.items()
        for docstring in _docstrings(tree)
        if _has_orphans(str(docstring.value))
    ]
    new = [text for path, text in found if path not in ALLOWED]
    assert not new, listed(new)
    unused = sorted(ALLOWED - {path for path, _ in found})
    assert not unused, f"these have none: {unused}"


def test_words_that_stand_alone_are_found() -> None:
    assert _has_orphans("Returns what there is, and\n    no more.\n    ")
    assert _has_orphans("Returns what there is, and\n    nothing.\n\n    It is empty at first.\n")
    assert not _has_orphans("Returns what there is, and\n    nothing more\n    at all.")
    assert not _has_orphans("Returns what there is, and\n    not what was.\n    ")
    assert not _has_orphans("Returns what there is.")
