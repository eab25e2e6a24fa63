# SPDX-License-Identifier: Apache-2.0
"""Who may do what at this broker: its accounts, the guard that asks them, and the first users.

Without `authenticationEnabled` there is no guard, and no request pays for one. Counterpart of the
pipelines of BrokerController, and of the initialization of AuthenticationMetadataManagerImpl.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from txrocketmq.access.acl.files import AclHome
from txrocketmq.access.acl.plain_acl import PlainAcl
from txrocketmq.access.acl.table import PlainAccounts
from txrocketmq.access.audit import Audit
from txrocketmq.access.auth.accounts import Accounts
from txrocketmq.access.auth.authority import UserAuthority
from txrocketmq.access.auth.migration import migrated, not_migrated
from txrocketmq.access.guard import AccessGuard, AccessRefused
from txrocketmq.access.known import host_of
from txrocketmq.access.needs import Action, need_of_topic
from txrocketmq.broker.accounts.account_tables import AclTable, UserTable
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.work import notices
from txrocketmq.broker.work.in_thread import InThread, at_once
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.broker.work.life import SECOND_MS, Beat, Life, Opening
from txrocketmq.remoting.call import Peer, PendingReply, Reply
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.connection import Seal
from txrocketmq.remoting.guards import Guard

USERS_FILE: Final = "users.json"
ACLS_FILE: Final = "acls.json"
CheckFound = Callable[[Peer, RemotingCommand, str], None]
"""Raises ResponseError unless who has sent a command may do with messages of a topic what it does.

It is for requests that find messages by something else than their topic."""


def _life_of(name: str, table: UserTable | AclTable) -> Life:
    """Changes are written at once; the beat writes those that could not be."""
    return Life(name, table=table, beats=(Beat(SECOND_MS, table.saving.begin),))


class Access:
    """The accounts of a broker with these settings; `folder` is its `config/`."""

    plain: PlainAccounts | None = None
    """The accounts of ACL 1, with aclEnable."""

    def __init__(
        self,
        config: BrokerConfig,
        folder: Path,
        steady_ms: Callable[[], int],
        now_ms: Callable[[], int] = lambda: 0,
        in_thread: InThread = at_once,
    ) -> None:
        self._config = config
        self._folder = folder
        self.accounts = Accounts()
        self.authority: UserAuthority | PlainAcl = UserAuthority(
            self.accounts, config, config.broker_cluster_name
        )
        """Decides about requests; of ACL 1 with aclEnable."""
        self._warnings: list[str] = []
        """What the start has found."""
        self.audit = Audit(notices.access_refused, notices.account_changed, steady_ms)
        self._users_file = JsonFile(folder / USERS_FILE, is_private=True)
        self._acls_file = JsonFile(folder / ACLS_FILE, is_private=True)
        self.users = UserTable(self._users_file, self.accounts)
        self.acls = AclTable(self._acls_file, self.accounts)
        if config.acl_enable:
            home = AclHome(config.rocketmq_home, config.acl_plain_file)
            self.plain = PlainAccounts(home, in_thread, now_ms, notices.account_changed)
            self.authority = self.plain.acl
        self.guard = AccessGuard(self.authority, self.audit) if self.is_guarded else None
        """Asks the accounts about each request; None without accounts, so that nobody pays for it.
        """

    @property
    def is_served(self) -> bool:
        """Whether there are accounts, be it only for later."""
        return self._config.has_users

    @property
    def is_guarded(self) -> bool:
        """Whether requests need an account, of either version."""
        return self.plain is not None or self.authenticates

    @property
    def authenticates(self) -> bool:
        """Whether every request is signed by the user that it names."""
        return self._config.authentication_enabled

    def files(self) -> list[JsonFile]:
        """The files that are read, if there are accounts."""
        return [self._users_file, self._acls_file] if self.is_served else []

    def guards(self) -> list[Guard]:
        """The guards that requests need."""
        return [] if self.guard is None else [self.guard]

    def found_check(self, action: Action) -> CheckFound | None:
        """What asks for this action on topics that requests find; None where nobody is asked."""
        return partial(self._check_found, action) if self.is_guarded else None

    def _check_found(
        self, action: Action, peer: Peer, command: RemotingCommand, topic: str
    ) -> None:
        host = host_of(peer.remote_address)
        need = need_of_topic(topic, action)
        refusal = self.authority.refusal_of_found(command, host, need)
        if refusal is not None:
            self.audit.refusal(command.code, host, refusal)
            raise AccessRefused(self.authority.code, refusal.remark)

    def seal(self) -> Seal | None:
        """What signs the requests that the broker sends itself, if there is an account for it."""
        return self._config.seal()

    def answer(self, reply: Reply[Any]) -> Reply[Any] | PendingReply:
        """Returns the reply, or a promise of it for when all changes are in both files."""
        first = self.acls.saving.answer(reply)
        if not isinstance(first, PendingReply):
            return self.users.saving.answer(reply)
        self.users.saving.begin()
        both = PendingReply(is_work=first.is_work)

        def policies_written(outcome: Reply[Any] | Exception) -> None:
            second = outcome if isinstance(outcome, Exception) else self.users.saving.answer(reply)
            if isinstance(second, PendingReply):
                second.then(both.resolve)
            else:
                both.resolve(second)

        first.then(policies_written)
        return both

    def lives(self) -> list[Life]:
        """Users come before their policies, of which only those of users are kept."""
        plain = [] if self.plain is None else [self.plain.life()]
        if not self.is_served:
            return plain or [Life("accounts", opens=lambda _: self._without_effect())]
        return [
            *plain,
            _life_of("users", self.users),
            _life_of("policies", self.acls),
            Life("accounts", loads=self._migrate, opens=self._open),
        ]

    # ------------------------------------------------------------------------------ the start

    def _migrate(self) -> None:
        """Takes over the accounts of RocketMQ 4 that are no users yet. Raises AclError."""
        config = self._config
        if not config.migrate_auth_from_v1_enabled:
            return
        files = AclHome(config.rocketmq_home, config.acl_plain_file).read()
        addresses = [key for key, account in files.accounts.items() if account.has_white]
        if not files.white.is_empty:
            addresses.insert(0, "everybody")
        if addresses:
            self._warnings.append(
                "migrateAuthFromV1Enabled: addresses from which no signature was needed are not"
                f" taken over, those for {', '.join(addresses[:10])}: write sourceIps into policies"
            )
        self._warnings += files.warnings
        for account in files.accounts.values():
            user, acl = migrated(account.config)
            if self.accounts.ensure(user):
                if acl is not None:
                    self.accounts.add_acl(acl)
                self._warnings += not_migrated(account.config)
                notices.account_changed(
                    f"the broker created the user {user.name} from an account of RocketMQ 4"
                )

    def _open(self, _: Opening) -> Iterator[str]:
        """Creates the users that the settings name; returns warnings."""
        config, warnings = self._config, self._warnings
        for key, user in config.named_users().items():
            known = self.accounts.users.get(user.name)
            if known is None:
                self.accounts.ensure(user)
                notices.account_changed(
                    f"the broker created the Super user {user.name}, which {key} names"
                )
            elif known.password != user.password:
                warnings.append(
                    f"{key} has another password than the user {user.name}, which keeps its own:"
                    " correct the setting, or change the user with updateUser of mqadmin"
                )
        if config.authentication_enabled and not self.accounts.users.all():
            warnings.append(
                "there is no user, so all requests will be refused: set initAuthenticationUser"
            )
        return iter([*warnings, *self._of_original()])

    def _of_original(self) -> Iterator[str]:
        """Tells of accounts that an original broker has left in the store."""
        for name, file in (("users", USERS_FILE), ("acls", ACLS_FILE)):
            if (self._folder / name).is_dir() and not (self._folder / file).exists():
                yield (
                    f"{self._folder / name} has the {name} of an original broker in RocksDB, which"
                    " is not read: copy them from a broker that runs with copyUser and copyAcl of"
                    " mqadmin"
                )

    def _without_effect(self) -> Iterator[str]:
        config = self._config
        for key, text in (
            ("initAuthenticationUser", config.init_authentication_user),
            ("authenticationWhitelist", config.authentication_whitelist),
            ("authorizationWhitelist", config.authorization_whitelist),
            ("authorizationMetadataProvider", config.authorization_metadata_provider),
        ):
            if text.strip():
                yield (
                    f"{key} is set, but authenticationEnabled is not true: requests need no account"
                )
        for name in (USERS_FILE, "users"):
            if (self._folder / name).exists():
                yield (
                    f"there are accounts in {self._folder / name}, but authenticationEnabled is not"
                    " true: requests need no account"
                )
