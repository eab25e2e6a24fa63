# SPDX-License-Identifier: Apache-2.0
"""How commands of the client end, and what they say then. Running them is in tests/process."""

from __future__ import annotations

import io

import pytest
from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure

from tests.client.fakes import result_of
from txrocketmq.cli import session
from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.base.errors import GroupNotFound, NoNameServer, NoRoute
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.host.clock import Clock


class Quiet:
    """A client that does nothing."""

    def start(self) -> None: ...

    async def stop(self) -> None: ...


class Names:
    async def topics(self) -> list[str]:
        return ["Invoices", "Orders"]

    async def groups(self) -> list[str]:
        return ["shop", "stock"]


def ended(error: Exception) -> tuple[int, str]:
    said = io.StringIO()
    return session.exit_code("prog", Failure(error), 130, said), said.getvalue()


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (NoRoute("T", "nobody has it"), "prog: topic T has no route: nobody has it\n"),
        (ConnectError("refused"), "prog: refused\n"),
        (ValueError("no number"), "prog: no number\n"),
        (FileNotFoundError(2, "No such file", "/x"), "prog: /x: No such file\n"),
    ],
)
def test_an_error_is_one_sentence(error: Exception, text: str) -> None:
    assert ended(error) == (1, text)


@pytest.mark.parametrize(
    ("error", "notes"),
    [
        (NoRoute("Ordrs", "nobody has it"), ["did you mean Orders?"]),
        (NoRoute("Xyzzy", "nobody has it"), []),
        (GroupNotFound("stok"), ["did you mean stock?"]),
    ],
)
def test_a_name_that_no_broker_has_is_answered_with_one_like_it(
    monkeypatch: pytest.MonkeyPatch, error: Exception, notes: list[str]
) -> None:
    monkeypatch.setattr(session, "ClientInstance", lambda *_: Quiet())
    monkeypatch.setattr(session, "Admin", lambda _: Names())

    async def fails(_: object) -> int:
        raise error

    asked = session._with_client(Clock(), ClientConfig(), fails)
    with pytest.raises(type(error)):
        result_of(asked)
    assert getattr(error, "__notes__", []) == notes
    said = ended(error)[1]
    assert said == f"prog: {'; '.join([str(error), *notes])}\n"


def test_who_finds_no_name_server_is_told_how_to_start_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "ClientInstance", lambda *_: Quiet())
    error = NoNameServer("no name server is reachable: 127.0.0.1:9876 (refused)")

    async def fails(_: object) -> int:
        raise error

    with pytest.raises(NoNameServer):
        result_of(session._with_client(Clock(), ClientConfig(), fails))
    text = (
        "prog: no name server is reachable: 127.0.0.1:9876 (refused); start servers with"
        " 'txrocketmq standalone', or name those of a cluster with --namesrv or $NAMESRV_ADDR\n"
    )
    assert ended(error) == (1, text)


def test_if_nobody_tells_names_the_error_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(Names):
        async def topics(self) -> list[str]:
            raise ConnectError("refused")

    monkeypatch.setattr(session, "ClientInstance", lambda *_: Quiet())
    monkeypatch.setattr(session, "Admin", lambda _: Silent())
    error = NoRoute("T", "nobody has it")

    async def fails(_: object) -> int:
        raise error

    with pytest.raises(NoRoute):
        result_of(session._with_client(Clock(), ClientConfig(), fails))
    assert ended(error)[1] == "prog: topic T has no route: nobody has it\n"


def test_an_interrupt_says_nothing() -> None:
    assert ended(CancelledError()) == (130, "")


def test_a_reader_that_has_gone_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[int] = []
    monkeypatch.setattr(session, "forget_stdout", lambda: forgotten.append(1))
    assert ended(BrokenPipeError()) == (0, "")
    assert forgotten == [1]


def test_a_defect_shows_where_it_is() -> None:
    code, text = ended(KeyError("oops"))
    assert code == 1
    assert text.startswith("prog: a defect of this program:\n")
    assert "KeyError" in text
