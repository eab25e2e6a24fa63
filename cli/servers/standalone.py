# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq standalone`: a name server and a broker in one process, with a port for gRPC.

The broker's settings come, each before the next, from the command line, the file given with -c,
and the defaults here: broker-a of DefaultCluster, on loopback, with its store in the user's data
folder. The name server keeps its files in `namesrv` inside the store. It starts before the broker
and stops after it. If clients need an account, the name server asks for the broker's. What serves
gRPC is a proxy in the same process, which reaches both over loopback, and asks for the same
accounts; it is there if its packages are installed.
"""

from __future__ import annotations

import argparse
import os
import random
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.error import CannotListenError
from twisted.logger import Logger

from txrocketmq.access.guard import AccessGuard
from txrocketmq.broker.accounts.access import Access
from txrocketmq.broker.service import Broker
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.cli.servers.first_account import (
    NO_PROXY,
    FirstAccount,
    check_open,
    has_accounts,
    has_plain_accounts,
    near_addresses,
)
from txrocketmq.cli.servers.welcome import welcome
from txrocketmq.namesrv.accounts import BrokerAuthority
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.service import NameServer
from txrocketmq.proxy.door import Door
from txrocketmq.proxy.needs import missing
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.primitives.networks import Networks
from txrocketmq.remoting.primitives.unknown_key import UnknownKey
from txrocketmq.remoting.settings.config_file import (
    LIST_SEPARATOR,
    ConfigError,
    Configuration,
    load_all,
    read_file,
)
from txrocketmq.remoting.settings.idle_settings import tell_idle
from txrocketmq.remoting.settings.option_parser import OptionParser
from txrocketmq.remoting.settings.service_options import add_service_options, service_options
from txrocketmq.remoting.settings.tls import load_tls
from txrocketmq.remoting.transport.address import address_facing, address_text

if TYPE_CHECKING:
    from txrocketmq.proxy.service import Proxy

PROG: Final = "txrocketmq standalone"
NAMESRV_PORT: Final = 9876
GRPC_PORT: Final = 8081
OFF: Final = "off"
LOOPBACK: Final = "127.0.0.1"
ALL_INTERFACES: Final = frozenset({"0.0.0.0", "::"})
MIN_FREE_BYTES: Final = 256 * 1024 * 1024
"""If fewer bytes than this are free on the disk, nothing is stored, unless a ratio is set: the disk
of a laptop may well be 90 % full and have tens of GB left."""
_RATIOS: Final = frozenset(
    {"diskMaxUsedSpaceRatio", "diskSpaceCleanForciblyRatio", "diskSpaceWarningLevelRatio"}
)
_FLOOR: Final[Mapping[str, str]] = {"diskSpaceMinFreeBytes": str(MIN_FREE_BYTES)}
STOP_S: Final = 3
"""For how many seconds calls of gRPC may go on when it stops."""
READY_TIMEOUT_MS: Final = 10_000
"""How many ms it may take until the broker is registered."""

log = Logger()

_ELSEWHERE: Final = "192.0.2.1:9"
"""An address that no machine has. Our own address on the way there is where others reach us."""
_LOOK_MS: Final = 2
_PORTS: Final = range(12_000, 32_000)
"""Free ports are looked for below those that the system gives to outgoing connections."""
_NEIGHBOURS: Final = (-2, 0, 1)
"""The distances from the broker's port to its VIP port, to itself, and to that of replication."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to run; `settings` are those of broker and store, by their names in broker.conf."""

    namesrv_port: int = NAMESRV_PORT
    """The port of the name server; 0 for any free one."""
    host: str = LOOPBACK
    """The address to listen on, which clients are told; 0.0.0.0 or :: for all addresses."""
    settings: Mapping[str, str] = field(default_factory=dict)
    grpc_port: int | None = None
    """The port for gRPC; 0 for any free one, None for none."""
    grpc_is_wanted: bool = True
    """Whether it is an error if that port cannot be opened; otherwise there is none then."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The environment in which Java's system properties about TLS are looked for."""


class Standalone:
    """Name server and broker. `start` returns soon; `ready` fires when clients find the broker."""

    def __init__(self, options: Options, clock: Clock | None = None) -> None:
        """`clock` is the broker's. Raises ConfigError."""
        self._options = options
        told = own_address() if options.host in ALL_INTERFACES else options.host
        settings = {
            "brokerName": "broker-a",
            "bindAddress": options.host,
            "brokerIP1": told,
            "enablePropertyFilter": "true",
            "recallMessageEnable": "true",
            "adminAddresses": near_addresses(told),
            "haAllowedAddresses": "",  # it is alone
            **({} if _RATIOS & options.settings.keys() else _FLOOR),
            **options.settings,
            "brokerId": "0",  # a master's, whatever the file says, as with mqbroker
        }
        self._has_accounts = has_accounts(settings)
        if self._has_accounts:  # which say who may do it
            settings["adminAddresses"] = options.settings.get("adminAddresses", "")
        self._tls, self._settings = load_tls(options.environment, settings)
        (self.config, self.store_config), self.unknown_keys = configure(self._settings)
        if self.store_config.is_slave:
            raise ConfigError(
                "brokerRole=SLAVE: a broker with a name server of its own has no master; run"
                " mqbroker with the name servers of the master"
            )
        if self.config.enable_controller_mode:
            raise ConfigError(
                "enableControllerMode=true: a broker with a name server of its own is the only one"
                " of its name; run mqbroker with the name servers of the others"
            )
        self._host = told
        self._clock = clock
        self._unhurried = Clock(clock.reactor if clock is not None else None)
        self.ready: Deferred[None] = Deferred()
        self.name_server: NameServer | None = None
        self.broker: Broker | None = None
        self.door = Door(self._unhurried, self._proxy)
        """The port for gRPC."""

    @property
    def grpc_endpoint(self) -> str:
        """The address at which clients that speak gRPC find the proxy; empty if there is none."""
        return address_text(self._host, self.door.port) if self.door.port else ""

    @property
    def namesrv_addr(self) -> str:
        """The address at which clients find the name server, once it has started."""
        assert self.name_server is not None
        return address_text(self._host, self.name_server.port)

    @property
    def broker_addr(self) -> str:
        """The address at which clients find the broker, once it has started."""
        assert self.broker is not None
        return self.broker.address

    def start(self) -> None:
        """Starts both servers; if one of them cannot start, what has started is stopped.

        Raises ValueError or OSError, whose text says what to do.
        """
        try:
            self._start()
        except CannotListenError as error:
            from txrocketmq.remoting.host.run import why_not_listening

            option = self._opens
            self.stop()
            why = why_not_listening(
                error,
                port=f"choose another port with {option}",
                address="choose another one with --host",
            )
            raise OSError(why) from None
        except Exception:
            self.stop()
            raise

    def _start(self) -> None:
        options = self._options
        self._opens = "--namesrv-port"
        files = Path(self.store_config.store_path_root_dir) / "namesrv"
        self.name_server = NameServer(
            NamesrvConfig(
                listen_port=options.namesrv_port,
                bind_address=options.host,
                kv_config_path=str(files / "kvConfig.json"),
                config_store_path=str(files / "namesrv.properties"),
                use_tls=self.config.use_tls or None,
                admin_addresses=self.config.admin_addresses,
            ),
            Clock(self._unhurried.reactor),
            tls=self._tls,
        )
        self.name_server.start()
        changes = {"namesrvAddr": self.namesrv_addr}
        if self.config.listen_port == 0:
            changes["listenPort"] = str(free_broker_port(options.host))
        given = {**self._settings, **changes}
        (config, store_config), _ = configure(given)
        configuration = Configuration((config, store_config), given)
        self._opens = "--broker-port"
        self.broker = Broker(config, store_config, self._clock, configuration, self._tls)
        if self._has_accounts:
            self._guard_name_server(self.broker.parts.access)
        self.broker.start()
        self._open_door()
        self._deadline_ms = self._unhurried.steady_ms() + READY_TIMEOUT_MS
        self._look()

    def _guard_name_server(self, access: Access) -> None:
        """Has the name server ask the accounts of the broker, lest strangers change its routes.

        The broker itself registers from an address of this machine, and has no account for that.
        """
        assert self.name_server is not None
        near = Networks(near_addresses(self._host).split(LIST_SEPARATOR))
        guard = AccessGuard(BrokerAuthority(access.authority, near), access.audit)
        self.name_server.guards.append(guard)

    def _open_door(self) -> None:
        """Opens the port for gRPC, if there is to be one."""
        options, self._opens = self._options, "--grpc-port"
        if options.grpc_port is None:
            return
        if self.config.acl_enable:
            log.info("clients of gRPC are not served: {why}", why=NO_PROXY)
            return
        try:
            self.door.open(options.grpc_port, options.host)
        except CannotListenError as error:
            if options.grpc_is_wanted:
                raise
            log.warn(
                "there is no port for gRPC, since {port} is not free: {why}",
                port=options.grpc_port,
                why=error.socketError,
            )

    def _proxy(self) -> Proxy:
        """Makes what serves gRPC; its package is imported then."""
        from txrocketmq.proxy.accounts.config import AccountsConfig
        from txrocketmq.proxy.accounts.sources import AccountsHere
        from txrocketmq.proxy.config import MessagingConfig, ProxyConfig
        from txrocketmq.proxy.service import Proxy

        assert self.broker is not None
        host = LOOPBACK if self._options.host in ALL_INTERFACES else self._options.host
        config = ProxyConfig(
            grpc_server_port=self.door.port,
            bind_address=self._options.host,
            namesrv_addr=address_text(host, self.name_server.port if self.name_server else 0),
            rocketmq_cluster_name=self.config.broker_cluster_name,
            use_tls=self.config.use_tls,
            proxy_protocol_from=self.config.proxy_protocol_from,
            grpc_shutdown_time_seconds=STOP_S,
        )
        return Proxy(
            config,
            MessagingConfig(auto_create_topic_enable=self.config.auto_create_topic_enable),
            Clock(self._unhurried.reactor),
            tls=self._tls,
            # Clients may be told of a port that leads here from another machine only.
            places={self.broker_addr: address_text(host, self.broker.port)},
            accounts=AccountsConfig(
                authentication_enabled=self.config.authentication_enabled,
                authorization_enabled=self.config.authorization_enabled,
            ),
            here=AccountsHere(self.broker.parts.access.accounts) if self._has_accounts else None,
        )

    def _look(self) -> None:
        """Fires `ready` if the name server has the broker; if not, looks again in a moment."""
        if self.name_server is None or self.ready.called:
            return
        if self.config.broker_name in self.name_server.table.cluster_info().broker_addr_table:
            self.ready.callback(None)
        elif self._unhurried.steady_ms() > self._deadline_ms:
            self.ready.errback(OSError("the broker could not register with the name server"))
        else:
            self._unhurried.later(_LOOK_MS, self._look)

    def stop(self) -> Deferred[Any]:
        """Stops the broker, which unregisters from the name server, and then the name server."""
        stopped: Deferred[Any] = Deferred()
        broker, self.broker = self.broker, None
        name_server, self.name_server = self.name_server, None
        self.door.close().chainDeferred(stopped)
        if broker is not None:
            stopped.addBoth(lambda _: broker.stop())
        if name_server is not None:
            stopped.addBoth(lambda _: name_server.stop())
        return stopped


def configure(settings: Mapping[str, str]) -> tuple[Any, list[UnknownKey]]:
    """Returns the configuration of broker and store, and the unknown keys. Raises ConfigError."""
    parts, unknown = load_all((BrokerConfig, StoreConfig), settings)
    return parts, unknown


def own_address() -> str:
    """Returns the address of this machine as others see it; loopback if it has no network."""
    return address_facing(_ELSEWHERE)


def free_broker_port(host: str) -> int:
    """Returns a port that is free together with its neighbours. Raises OSError if there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for port in random.sample(_PORTS, 100):
        held: list[socket.socket] = []
        try:
            for step in _NEIGHBOURS:
                held.append(socket.socket(family, socket.SOCK_STREAM))
                held[-1].bind((host, port + step))
        except OSError:
            continue
        finally:
            for each in held:
                each.close()
        return port
    raise OSError(f"no free port was found at {host}")


def default_store() -> str:
    """Returns the folder of the store by default, in $XDG_DATA_HOME or ~/.local/share."""
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return str(Path(home) / "txrocketmq" / "standalone")


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the command's options."""
    parser = OptionParser(PROG, "Run a name server and a broker in one process, until Ctrl-C.")
    parser.add_argument(
        "--namesrv-port", type=_port, default=NAMESRV_PORT, metavar="PORT",
        help="The port of the name server (default: %(default)s; 0 takes a free one).",
    )  # fmt: skip
    parser.add_argument(
        "--broker-port", type=_port, metavar="PORT",
        help="The port of the broker (default: 10911; 0 takes a free one); its VIP port is two"
        " below.",
    )  # fmt: skip
    parser.add_argument(
        "--grpc-port", type=_port_or_off, metavar="PORT",
        help=f"The port for clients of 5.x that speak gRPC (default: {GRPC_PORT}, if that is free"
        f" and the packages of txrocketmq[grpc] are installed; 0 takes a free one, {OFF} opens"
        " none).",
    )  # fmt: skip
    parser.add_argument(
        "--store", metavar="FOLDER", help=f"Where messages are kept (default: {default_store()})."
    )
    parser.add_argument(
        "--host", default=LOOPBACK, metavar="ADDRESS",
        help="The address to listen on, which clients are told as well (default: %(default)s, for"
        " clients on this machine only); 0.0.0.0 listens on all addresses and tells clients the"
        " one that other machines see.",
    )  # fmt: skip
    parser.add_argument(
        "--account", metavar="NAME",
        help="Require accounts: NAME is created with the right to do everything, and its secret"
        " is printed once.",
    )  # fmt: skip
    parser.add_argument(
        "--open", action="store_true",
        help="Allow a --host that other machines reach although nobody needs an account.",
    )  # fmt: skip
    parser.add_argument(
        "-c",
        "--config",
        metavar="FILE",
        help="A broker.conf with settings of the broker and its store.",
    )
    add_service_options(parser)
    return parser


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Returns the options that were given."""
    return make_parser().parse_args(arguments)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: give 0 to 65535")
    return int(text)


def _port_or_off(text: str) -> int | str:
    return OFF if text == OFF else _port(text)


def options_of(arguments: argparse.Namespace, account: FirstAccount | None = None) -> Options:
    """Returns what the options and the file ask for. Raises ConfigError."""
    settings = {"storePathRootDir": default_store()}
    if arguments.config is not None:
        settings |= read_file(arguments.config)
        settings["brokerConfigPath"] = arguments.config
    if arguments.store is not None:
        settings["storePathRootDir"] = arguments.store
    if arguments.broker_port is not None:
        settings["listenPort"] = str(arguments.broker_port)
    if account is not None:
        settings |= account.settings()
    grpc_port, why = arguments.grpc_port, missing()
    if has_plain_accounts(settings):
        why = NO_PROXY
    if grpc_port not in (None, OFF) and why:
        raise ConfigError(f"--grpc-port: {why}")
    if grpc_port is None and not why:
        grpc_port = GRPC_PORT
    return Options(
        arguments.namesrv_port,
        arguments.host,
        settings,
        None if grpc_port == OFF else grpc_port,
        grpc_is_wanted=arguments.grpc_port is not None,
        environment=os.environ,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs until a signal stops it; returns the exit code."""
    # Not at the top: it takes the global reactor, which tests leave to their programs.
    from txrocketmq.remoting.host.reactor.own_reactor import install_reactor

    install_reactor()
    from txrocketmq.remoting.host.run import run_service

    flags = parse_arguments(arguments)
    where = ""
    try:
        account = FirstAccount(flags.account) if flags.account is not None else None
        options = options_of(flags, account)
        where = f"{flags.config}: " if flags.config is not None else ""
        service = Standalone(options)
        where = ""
        check_open(flags.host, service.config, is_open=flags.open)
    except ConfigError as error:
        print(f"{PROG}: {where}{error}", file=sys.stderr)
        return 1
    classes = BrokerConfig, StoreConfig
    tell_idle(PROG, flags.config, service.unknown_keys, classes, options.settings)
    service.ready.addCallback(lambda _: _welcome(service, account))
    return run_service(
        PROG,
        service,
        service_options(flags),
        addresses=lambda: f"{service.namesrv_addr} {service.broker_addr}",
        ready=service.ready,
    )


def _welcome(service: Standalone, account: FirstAccount | None) -> None:
    assert service.broker is not None
    assert service.name_server is not None
    if account is not None:
        print(account.told(service.broker.parts.access.accounts.users.get(account.name)), end="")
    print(
        welcome(
            # Whoever is told of a machine for the broker finds the name server there, too.
            address_text(service.config.broker_ip1, service.name_server.port),
            service.broker_addr,
            service.config.broker_cluster_name,
            service.config.broker_name,
            str(Path(service.store_config.store_path_root_dir).absolute()),
            service.grpc_endpoint,
            needs_account=service.broker.parts.access.is_guarded,
        ),
        flush=True,
    )
