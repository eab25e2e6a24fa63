# SPDX-License-Identifier: Apache-2.0
"""What a signed send and a signed pull cost a whole broker more than unsigned ones.

Operations of Python and calls into C are counted, which come out the same however busy the machine
is: in a read of 32 requests, some 100 operations with 13 calls are 2 us, of which SHA-1 of the
fields and 1 KiB of body has two thirds. A request that is alone in a read pays for the read too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.broker.test_service import Client, Scene
from tests.broker.test_service_accounts import Account, alice_of, guarded
from tests.counted import Work, work_of
from txrocketmq import access
from txrocketmq.broker.store.disk.descriptors import mappings
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.frame import encode_frame
from txrocketmq.remoting.message.properties import encode_properties
from txrocketmq.remoting.process.compiled_kernel import VARIABLE
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.pull import PullMessageRequestHeader
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader

BODY = b"x" * 1024
READS = 8
CHECKS = str(Path(access.__file__).parent)
"""The folder of what is done for accounts."""
Make = Callable[[int], tuple[int, dict[str, str], bytes]]


def sends(number: int) -> tuple[int, dict[str, str], bytes]:
    properties = {"UNIQ_KEY": f"7F00000100002A139A9E5EFB{number:08X}", "WAIT": "true"}
    header = SendMessageRequestHeader(
        producer_group="p", topic="T", default_topic="TBW102", default_topic_queue_nums=4,
        queue_id=number % 4, sys_flag=0, born_timestamp=1_700_000_000_000 + number, flag=0,
        properties=encode_properties(properties),
    )  # fmt: skip
    return 310, header.encode_letters(), BODY


def pulls(number: int) -> tuple[int, dict[str, str], bytes]:
    header = PullMessageRequestHeader(
        consumer_group="g", topic="T", queue_id=number % 4, queue_offset=0, max_msg_nums=1,
        sys_flag=4, commit_offset=0, suspend_timeout_millis=0, subscription="*", sub_version=0,
    )  # fmt: skip
    return 11, header.encode(), b""


def work(
    account: Account | None, client: Client, make: Make, in_a_read: int, where: Counter[str]
) -> Work:
    """Returns what one of the requests takes that come so many in a read."""
    frames = []
    for number in range(2 * READS * in_a_read):
        code, fields, body = make(number)
        command = (
            RemotingCommand(code, fields, body)
            if account is None
            else account.signed(code, fields, body)
        )
        frames.append(b"".join(map(bytes, encode_frame(command))))
    reads = [b"".join(frames[at : at + in_a_read]) for at in range(0, len(frames), in_a_read)]
    for data in reads[:READS]:
        client.protocol.dataReceived(data)
    assert {answer.code for answer in client.heard()} == {0}
    calls = [partial(client.protocol.dataReceived, data) for data in reads[READS:]]
    found = work_of(calls, READS * in_a_read, where)
    assert {answer.code for answer in client.heard()} == {0}
    return found


def checks(where: Counter[str]) -> list[str]:
    """Returns the functions that are called for accounts."""
    return [name for name in where if name.startswith(CHECKS)]


@pytest.mark.parametrize(
    ("make", "in_a_read", "operations", "calls"),
    [(sends, 1, 122, 14), (sends, 32, 94, 14), (pulls, 1, 114, 13), (pulls, 32, 96, 13)],
)
def test_what_an_account_costs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Make,
    in_a_read: int,
    operations: int,
    calls: int,
) -> None:
    # With those that other tests have left open, the store would give up mappings all the time.
    monkeypatch.setattr(mappings, "count", 0)
    # With the kernel there is hardly an operation of Python for a signature.
    monkeypatch.setenv(VARIABLE, "off")
    of_plain, of_signed = Counter[str](), Counter[str]()
    plain = Scene(tmp_path / "plain").start()
    plain.broker.parts.topics.update(TopicConfig(topic_name="T"))
    client = Client(plain)
    for number in range(4):
        client.protocol.dataReceived(
            b"".join(map(bytes, encode_frame(RemotingCommand(*sends(number)))))
        )
    client.heard()
    unsigned = work(None, client, make, in_a_read, of_plain)
    assert not [name for name in of_plain if name.startswith(CHECKS)], (
        "nothing is done for accounts"
    )
    scene = guarded(tmp_path / "guarded")
    alice = alice_of(scene)
    alice.tell(*(alice.signed(*sends(number)) for number in range(4)))
    signed = work(alice, alice.client, make, in_a_read, of_signed)
    assert checks(of_signed)
    more = signed.less(unsigned)
    of_signed.subtract(of_plain)
    differences = "\n".join(f"{count} {name}" for name, count in of_signed.most_common() if count)
    assert 10 < more.operations <= operations, f"{unsigned}, {signed}\n{differences}"
    assert more.calls <= calls, f"{unsigned}, {signed}\n{differences}"
