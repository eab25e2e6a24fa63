# SPDX-License-Identifier: Apache-2.0
"""Damaged requests of the original's programs: answered, without failing and without a trace."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import NOW_MS, FakePeer
from tests.namesrv.conftest import Names
from tests.namesrv.test_golden_frames import RECORDINGS, conversation
from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher
from txrocketmq.remoting.frame.frame import FrameDecoder

# One of each code and version: of a hundred registrations, one is enough.
REQUESTS = list(
    {
        (said.request.code, said.request.version, len(said.request.body) > 0): said.request
        for recording in RECORDINGS
        for said in conversation(recording)
    }.values()
)
NOWHERE = Path("/dev/null")
"""Where no file can be written: the table is what is tested."""

requests = st.sampled_from(REQUESTS)
texts = st.one_of(st.just(""), st.just("-1"), st.just("99999999999999999999"), st.text(max_size=9))


@st.composite
def damaged(draw: st.DrawFn) -> RemotingCommand:
    """A request with some bytes of its body and some of its fields replaced or gone."""
    request = draw(requests)
    body = bytearray(request.body)
    for at in draw(st.lists(st.integers(0, max(len(body) - 1, 0)), max_size=4)):
        body[at : at + 1] = draw(st.binary(max_size=3))
    fields = dict(request.ext_fields or {})
    for name in draw(
        st.lists(st.sampled_from(sorted(fields)), max_size=3) if fields else st.just([])
    ):
        if draw(st.booleans()):
            fields[name] = draw(texts)
        else:
            fields.pop(name, None)
    fields.pop("bodyCrc32", None)  # it would catch everything at the door
    end = draw(st.integers(0, len(body)) | st.just(len(body)))
    return RemotingCommand(
        request.code, fields, bytes(body[:end]), opaque=7, version=request.version
    )


@given(script=st.lists(damaged(), min_size=1, max_size=6))
def test_damaged_requests_are_answered(
    script: list[RemotingCommand],
) -> None:
    failures: list[str] = []

    def failed(command: RemotingCommand, peer: Peer, error: Exception) -> None:
        failures.append(f"{command}: {error!r}")

    names = Names(NOWHERE, {})
    dispatcher = Dispatcher(names.registry, lambda: NOW_MS, lambda: NOW_MS, failed)
    for command in script:
        peer = FakePeer()
        dispatcher.serve(peer, [command])
        (answer,) = FrameDecoder().receive(b"".join(peer.written))
        assert answer.opaque == command.opaque
        assert not failures
    for topic in names.table.topics().topic_list:
        assert names.table.route(topic) is not None
    names.table.expire(NOW_MS + 2**63)
    assert not names.table.cluster_info().broker_addr_table
