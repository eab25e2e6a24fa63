# SPDX-License-Identifier: Apache-2.0
"""The accounts of a name server, and the guard that asks them; the original has neither.

Without `authenticationEnabled` there is no guard. Users and policies are those of the files
users.json and acls.json, which brokers write, beside the file of the key-values: copy them from a
broker, or mount the same ones. They are only read here, at the start and whenever they change, and
a broken one leaves the accounts as they were, as does an empty one. A .bak beside them is not read:
it may have users that were removed since. The users that the settings name come on top of them.

Whoever registers or unregisters a broker needs Update of the cluster, so a route cannot be taken
over without an account. Brokers of 5.x sign what they send; those of 4.9 cannot, so their addresses
may be listed in `brokersWithoutAccount`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

from txrocketmq.access.audit import Audit
from txrocketmq.access.auth.accounts import Accounts
from txrocketmq.access.auth.authority import UserAuthority
from txrocketmq.access.auth.policies import Acl, acl_of
from txrocketmq.access.auth.users import User, entries_of
from txrocketmq.access.authority import Authority, Refusal
from txrocketmq.access.guard import AccessGuard
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import RemotingError, ResponseError
from txrocketmq.remoting.frame.connection import Seal
from txrocketmq.remoting.guards import Guard
from txrocketmq.remoting.host.life import Beat, Done, InThread, Life
from txrocketmq.remoting.primitives.networks import Networks
from txrocketmq.remoting.process.kept_json import read_kept
from txrocketmq.remoting.protocol.body.auth import AclInfo

PERIOD_MS: Final = 5_000
READING: Final = "reading the accounts again"
CLUSTER: Final = "NameServer"
"""The name of the cluster that policies of a name server are about."""
OF_BROKERS: Final = frozenset(
    (
        RequestCode.REGISTER_BROKER,
        RequestCode.UNREGISTER_BROKER,
        RequestCode.REGISTER_TOPIC_IN_NAMESRV,
        RequestCode.QUERY_DATA_VERSION,
        RequestCode.BROKER_HEARTBEAT,
        RequestCode.GET_ROUTEINFO_BY_TOPIC,
        RequestCode.GET_BROKER_MEMBER_GROUP,
    )
)
"""What brokers ask of a name server."""
_FILES: Final = ("users.json", "acls.json")
T = TypeVar("T")
_Stamps = tuple[tuple[int, int, int] | None, ...]


class BrokerAuthority:
    """An authority that lets brokers at some addresses do what brokers do, without an account."""

    def __init__(self, authority: Authority, brokers: Networks) -> None:
        self.code = authority.code
        self.known = authority.known
        self._refusal = authority.refusal
        self._brokers = brokers

    def refusal(self, command: RemotingCommand, host: str) -> Refusal | None:
        """Returns why this request from this address is refused, or None if it is allowed."""
        refusal = self._refusal(command, host)
        if refusal is not None and command.code in OF_BROKERS and host in self._brokers:
            return None
        return refusal


class NamesrvAccounts:
    """The accounts. `tell` writes a line to the log, `in_thread` runs what may block."""

    def __init__(
        self,
        config: NamesrvConfig,
        steady_ms: Callable[[], int],
        in_thread: InThread,
        tell: Callable[[str], None],
    ) -> None:
        self._config = config
        self._in_thread = in_thread
        self._tell = tell
        self._paths = [Path(config.kv_config_path).with_name(name) for name in _FILES]
        self._seen: _Stamps = ()
        self._is_busy = False
        self.accounts = Accounts()
        self.audit = Audit(tell, tell, steady_ms)
        self.on_read: list[Callable[[Exception | None], None]] = []
        """Each is called with what has kept the files from being read again, or None."""

    def guards(self) -> list[Guard]:
        """The guards that requests need: none without accounts, so that nobody pays for them."""
        config = self._config
        if not config.authentication_enabled:
            return []
        authority = UserAuthority(self.accounts, config, CLUSTER)
        brokers = Networks(config.brokers_without_account)
        return [AccessGuard(BrokerAuthority(authority, brokers), self.audit)]

    def seal(self) -> Seal | None:
        """What signs the requests that the server sends itself, if there is an account for it."""
        return self._config.seal()

    def life(self) -> Life:
        """The files are looked at every five seconds."""
        if not self._config.authentication_enabled:
            return Life("accounts", opens=lambda _: self._without_effect())
        return Life(
            "accounts",
            loads=self.load,
            opens=lambda _: self._warnings(),
            troubles={READING: self.on_read},
            beats=(Beat(PERIOD_MS, self.look),),
        )

    def load(self) -> None:
        """Reads the files here and now. Raises ValueError with advice."""
        self._seen = self._stamps()
        self._hold(*self._read())

    def look(self) -> None:
        """Reads the files again if they have changed, unless they are being read."""
        if self._is_busy:
            return
        found: list[tuple[dict[str, User], dict[str, Acl]]] = []

        def work() -> None:
            stamps = self._stamps()
            if stamps != self._seen:
                self._seen = stamps
                found.append(self._read())

        self._is_busy = True
        self._in_thread(work, self._looked(found))

    def _looked(self, found: list[tuple[dict[str, User], dict[str, Acl]]]) -> Done:
        def looked(error: Exception | None) -> None:
            self._is_busy = False
            if error is None and not found:
                return
            if error is None:
                self._hold(*found[0])
                self._tell(f"the accounts were read again: {len(found[0][0])} users")
            for listener in self.on_read:
                listener(error)

        return looked

    def _read(self) -> tuple[dict[str, User], dict[str, Acl]]:
        """Reads both files; may be called in any thread. Raises ValueError with advice."""
        users_path, acls_path = self._paths
        users = _decoded(users_path, "userTable", User.stored)
        acls = _decoded(
            acls_path, "aclTable", lambda name, value: acl_of(name, AclInfo.from_json(value))
        )
        for acl in acls.values():
            acl.make_index()  # not in a turn of the reactor
        return users, acls

    def _hold(self, users: dict[str, User], acls: dict[str, Acl]) -> None:
        for user in self._config.named_users().values():
            users.setdefault(user.name, user)
        self.accounts.hold_users(users)
        self.accounts.hold_acls({name: acl for name, acl in acls.items() if name in users})

    def _stamps(self) -> _Stamps:
        return tuple(map(_stamp, self._paths))

    def _warnings(self) -> Iterator[str]:
        if not self.accounts.users.all():
            yield (
                "there is no user, so all requests will be refused: set initAuthenticationUser, or"
                f" copy users.json of a broker to {self._paths[0]}"
            )

    def _without_effect(self) -> Iterator[str]:
        if self._paths[0].exists():
            yield (
                f"there are accounts in {self._paths[0]}, but authenticationEnabled is not true:"
                " requests need no account"
            )


def _decoded(path: Path, table: str, decode: Callable[[str, Any], T]) -> dict[str, T]:
    """Reads the entries of a file. Raises ValueError, whose text names the file."""
    _, content, why = read_kept(path, is_private=True, falls_back=False)
    if why:
        raise ValueError(why)
    try:
        entries = {} if content is None else entries_of(content, table)
        return {name: decode(name, value) for name, value in entries.items()}
    except ResponseError as error:
        raise ValueError(f"{path} does not hold what it should: {error.remark}") from None
    except (RemotingError, ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} does not hold what it should: {error}") from None


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
