# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import shutil
import ssl
from pathlib import Path

import pytest
from twisted.logger import capturedLogs, formatEvent

from tests.certificates import certified
from txrocketmq.remoting.settings.config_file import ConfigError
from txrocketmq.remoting.settings.tls import TlsConfig, client_context
from txrocketmq.remoting.transport.tls.renewed_context import RenewedContext, own_contexts


class Scene:
    """A file with a certificate and its key, and the contexts that are made of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "own.pem"
        self.renew("first")
        self.contexts = RenewedContext(self.make, ["", str(self.path)])
        self.made: list[ssl.SSLContext] = []

    def renew(self, name: str) -> None:
        shutil.copy(certified(self.folder, name), self.folder / "new.pem")
        (self.folder / "new.pem").replace(self.path)

    def make(self) -> ssl.SSLContext:
        own = str(self.path)
        self.made.append(client_context(certificate=("own", own), key=("own", own)))
        return self.made[-1]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_there_is_one_context_until_a_file_changes(scene: Scene) -> None:
    scene.contexts.prepare()
    first = scene.contexts.current()
    assert [first, scene.contexts.current()] == scene.made * 2
    scene.renew("second")
    second = scene.contexts.current()
    assert [first, second] == scene.made
    assert scene.contexts.current() is second


def test_what_cannot_be_used_is_said_once_and_the_last_one_stays(scene: Scene) -> None:
    first = scene.contexts.current()
    scene.path.write_text("broken", "utf-8")
    with capturedLogs() as events:
        assert [scene.contexts.current() for _ in range(3)] == [first] * 3
    (said,) = map(formatEvent, events)
    assert said.startswith("the certificates have changed and cannot be used, those before stay: ")
    scene.renew("second")
    assert scene.contexts.current() is not first


def test_without_any_the_error_is_raised_each_time(scene: Scene) -> None:
    scene.path.unlink()
    for call in (scene.contexts.prepare, scene.contexts.current, scene.contexts.current):
        with pytest.raises(ConfigError, match=r"own is .*own\.pem, which cannot be read"):
            call()
    scene.renew("second")
    assert scene.contexts.current() is scene.made[-1]


def test_a_server_renews_what_it_shows_where_it_connects(scene: Scene) -> None:
    own = str(scene.path)
    files = {"server_cert_path": own, "server_key_path": own}
    mine = {"client_cert_path": own, "client_key_path": own}
    current = own_contexts(TlsConfig(test_mode=False, **files, **mine))  # type: ignore[arg-type]
    first = current()
    assert current() is first
    scene.renew("second")
    assert current() is not first
    made = own_contexts(TlsConfig())
    assert made() is made(), "in test mode it shows none, and so none is looked for"
