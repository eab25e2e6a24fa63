# SPDX-License-Identifier: Apache-2.0
"""The accounts of ACL 1 in a server: read at the start and when files change, and changed.

Every five seconds it is looked whether files have changed. All of them are read again then, in a
thread, and take the place of the accounts at once; if one is broken, the accounts stay as they are,
and the log says why. Changes by administrators are written to the disk, and count, before they are
answered. One thing is done at a time. Java: PlainPermissionManager and AclFileWatchService.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from txrocketmq.access.acl.edits import Edit, applied
from txrocketmq.access.acl.errors import AclError
from txrocketmq.access.acl.files import AclFiles, AclHome, Stamp
from txrocketmq.access.acl.plain_acl import PlainAcl
from txrocketmq.remoting.host.life import Beat, Done, InThread, Life

PERIOD_MS = 5_000
"""The time between two looks at the files."""
READING = "reading the accounts (aclEnable) again"

_Read = Callable[[], AclFiles | None]


class PlainAccounts:
    """The accounts. `tell` writes a line to the log, `in_thread` runs what may block."""

    def __init__(
        self,
        home: AclHome,
        in_thread: InThread,
        now_ms: Callable[[], int],
        tell: Callable[[str], None],
    ) -> None:
        self.home = home
        self.acl = PlainAcl()
        """Decides by these accounts."""
        self.on_read: list[Callable[[Exception | None], None]] = []
        """Each is called with what has kept the files from being read again, or None."""
        self._in_thread = in_thread
        self._now_ms = now_ms
        self._tell = tell
        self._seen: dict[str, Stamp] = {}
        """The stamps of the files when they were last read, perhaps in vain."""
        self._edits: deque[tuple[Edit, Done]] = deque()
        self._is_busy = False

    @property
    def files(self) -> AclFiles:
        """The files as they were read last."""
        return self.acl.files

    def life(self) -> Life:
        """The files are looked at every five seconds."""
        return Life(
            "accounts of ACL 1",
            loads=self.load,
            opens=lambda _: self._warnings(),
            troubles={READING: self.on_read},
            beats=(Beat(PERIOD_MS, self.look),),
        )

    def load(self) -> None:
        """Reads the files here and now. Raises AclError with advice."""
        try:
            self._hold(self.home.read())
        except AclError as error:
            raise AclError(f"{error}. Repair the file; without it, aclEnable=true starts") from None

    def look(self) -> None:
        """Reads the files again if they have changed, unless something is being done with them."""
        if not self._is_busy:
            self._do(self._changed, self._looked)

    def edit(self, edit: Edit, done: Done) -> None:
        """Changes files, and then calls `done`, with an AclError if there was something wrong."""
        self._edits.append((edit, done))
        if not self._is_busy:
            self._next()

    def _warnings(self) -> list[str]:
        files = self.files
        if not files.accounts and files.white.is_empty:
            none = "aclEnable=true, and there are no accounts, so all requests are refused"
            return [f"{none}: write some to {self.home.default_file}", *files.warnings]
        return [*files.warnings]

    def _changed(self) -> AclFiles | None:
        """The files if they have changed, and do not change while they are read; in a thread."""
        stamps = self.home.stamps()
        if stamps == self._seen:
            return None
        try:
            files = self.home.read()
        except AclError:
            if self.home.stamps() == stamps:
                self._seen = stamps
                raise
            return None
        return files if files.stamps == self.home.stamps() else None

    def _looked(self, error: Exception | None, files: AclFiles | None) -> None:
        if error is None and files is None:
            return
        if files is not None:
            self._hold(files)
            self._tell(
                f"the accounts were read again: {len(files.accounts)} accounts of"
                f" {len(files.files)} files"
            )
            for warning in files.warnings:
                self._tell(warning)
        for listener in self.on_read:
            listener(error)

    def _next(self) -> None:
        if not self._edits:
            return
        edit, done = self._edits.popleft()

        def edited(error: Exception | None, files: AclFiles | None) -> None:
            if files is not None:
                self._hold(files)
            done(error)

        self._do(lambda: applied(edit, self.home, self._now_ms()), edited)

    def _do(self, read: _Read, done: Callable[[Exception | None, AclFiles | None], None]) -> None:
        found: list[AclFiles | None] = []

        def ended(error: Exception | None) -> None:
            self._is_busy = False
            try:
                done(error, found[0] if error is None else None)
            finally:
                self._next()

        self._is_busy = True
        self._in_thread(partial(_keep, read, found), ended)

    def _hold(self, files: AclFiles) -> None:
        self._seen = dict(files.stamps)
        self.acl.hold(files)


def _keep(read: _Read, found: list[AclFiles | None]) -> None:
    found[:] = [read()]
