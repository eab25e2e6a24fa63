# SPDX-License-Identifier: Apache-2.0
"""A context of TLS that is made anew when the files of its certificates have changed.

So certificates are renewed while a server or client runs: connections that begin after the change
use them, and those that are open go on as they began. Counterpart of FileWatchService, which
watches the files of servers only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from twisted.logger import Logger

from txrocketmq.remoting.settings.config_file import ConfigError
from txrocketmq.remoting.settings.tls import TlsConfig, own_client_context

if TYPE_CHECKING:
    import ssl

log = Logger()


class RenewedContext:
    """The context that `make` returns, which reads the files at `paths`.

    `make` raises ConfigError if a file cannot be used. If there was a context before, that is used
    on, and an error is logged, once for each change: the key may follow its certificate.
    """

    def __init__(self, make: Callable[[], ssl.SSLContext], paths: Iterable[str]) -> None:
        self._make = make
        self._paths = tuple(filter(None, paths))
        self._context: ssl.SSLContext | None = None
        self._seen: tuple[object, ...] = ()
        """When the files were changed of which the context was made, or was to be made."""

    def prepare(self) -> None:
        """Makes the context now. Raises ConfigError."""
        self._seen = self._changed()
        self._context = self._make()

    def current(self) -> ssl.SSLContext:
        """Returns the context, made anew if files have changed. Raises ConfigError without one."""
        changed = self._changed()
        if self._context is not None and changed == self._seen:
            return self._context
        self._seen = changed
        try:
            self._context = self._make()
        except ConfigError as error:
            if self._context is None:
                raise
            log.error(  # noqa: TRY400 - a file that is wrong is no defect of ours
                "the certificates have changed and cannot be used, those before stay: {why}",
                why=error,
            )
        return self._context

    def _changed(self) -> tuple[object, ...]:
        return tuple(map(_state, self._paths))


def _state(path: str) -> object:
    try:
        state = Path(path).stat()
    except OSError as error:
        return error.errno
    return state.st_mtime_ns, state.st_ino, state.st_size


def own_contexts(config: TlsConfig) -> Callable[[], ssl.SSLContext]:
    """Returns what gives a server the context for each connection that it opens itself.

    Raises ConfigError if there is none now.
    """
    paths = () if config.test_mode else config.client_paths
    contexts = RenewedContext(partial(own_client_context, config), paths)
    contexts.prepare()
    return contexts.current
