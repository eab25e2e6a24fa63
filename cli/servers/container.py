# SPDX-License-Identifier: Apache-2.0
"""The entry point of the container image: starts the requested server with its settings.

    python -m txrocketmq.cli.servers.container [SERVER] [OPTION ...]

The first argument chooses the server: `standalone`, which is the default, `mqnamesrv`, `mqbroker`
or `proxy`. Any other command of `txrocketmq` can be run as well. Settings come from a file and from
the environment, which takes precedence. The file is the one of -c (-pc for the proxy), else of
$ROCKETMQ_CONF, else the one that is mounted in /etc/rocketmq. In the environment the name of a
setting, spelled as in the file, follows ROCKETMQ_BROKER_, ROCKETMQ_NAMESRV_ or ROCKETMQ_PROXY_, and
one that does not exist stops the start. The server reads both from one file that is written anew at
each start, so what `mqadmin updateBrokerConfig` changes holds until then.

Whoever starts a container may know only afterwards by which ports it is reached, and copy the file
into it then: it is waited for as long as $ROCKETMQ_CONF_WAIT_SECONDS says.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.cli.__main__ import COMMANDS
from txrocketmq.cli.__main__ import main as txrocketmq
from txrocketmq.cli.servers.health import ENCRYPTED, GRPC, ports_file
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.proxy.__main__ import read_json
from txrocketmq.proxy.config import MessagingConfig, ProxyConfig
from txrocketmq.remoting.settings.config_file import (
    ConfigError,
    load_all,
    read_file,
    write_properties,
)
from txrocketmq.remoting.settings.tls import ENFORCING, TLS_KEYS, load_tls

PROG: Final = "txrocketmq container"
CONF: Final = "ROCKETMQ_CONF"
CONF_WAIT: Final = "ROCKETMQ_CONF_WAIT_SECONDS"
MOUNTED: Final = Path("/etc/rocketmq")
"""The folder in which files of settings are looked for."""

_OTHERS: Final = frozenset({CONF, CONF_WAIT, "ROCKETMQ_HOME"})
"""Variables that begin with ROCKETMQ_ and are no settings; the last one is the original's."""
_KUBERNETES: Final = re.compile(
    r"ROCKETMQ_[A-Z0-9_]*?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?"
    r"|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)
"""Variables that Kubernetes sets for services called rocketmq-...; they are not settings either."""
_LOOK_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Server:
    """One of the servers: which settings it has, where they are found, how it is run."""

    prefix: str
    """The prefix that names of its settings have in the environment."""
    classes: tuple[type, ...]
    file: str
    """The name of its file of settings."""
    module: str
    defaults: Mapping[str, str]
    """The settings whose defaults differ in a container; {home} stands for the home folder."""
    options: tuple[str, ...] = ()
    """Options of its command that come before those that are given."""
    flag: str = "-c"
    """The option that names its file."""
    read: Callable[[str | Path], dict[str, str]] = read_file
    write: Callable[[Mapping[str, str]], str] = write_properties
    grpc: bool = False
    """Whether its port speaks gRPC."""


_OF_BROKERS: Final = ("ROCKETMQ_BROKER_", (BrokerConfig, StoreConfig), "broker.conf")
SERVERS: Final[Mapping[str, Server]] = {
    "standalone": Server(
        *_OF_BROKERS,
        "txrocketmq.cli.servers.standalone",
        # Its clients run on the container's machine and use the ports that are mapped to it.
        # They come from the address of its bridge, and administrators as well.
        {"brokerIP1": "127.0.0.1", "storePathRootDir": "{home}/store", "adminAddresses": ""},
        # A port of a container is published by hand, so nothing is open by accident.
        ("--host", "0.0.0.0", "--open"),
    ),
    "mqbroker": Server(*_OF_BROKERS, "txrocketmq.broker.__main__", {}),
    "mqnamesrv": Server(
        *("ROCKETMQ_NAMESRV_", (NamesrvConfig,), "namesrv.conf", "txrocketmq.namesrv.__main__"),
        {"kvConfigPath": "{home}/store/namesrv/kvConfig.json"},  # on the only volume
    ),
    "proxy": Server(
        "ROCKETMQ_PROXY_",
        (ProxyConfig, MessagingConfig),
        "rmq-proxy.json",
        "txrocketmq.proxy.__main__",
        {},
        flag="-pc",
        read=read_json,
        write=json.dumps,
        grpc=True,
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the requested server or command until it ends; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    name, options = "standalone", list(arguments)
    if arguments and not arguments[0].startswith("-"):
        name, *options = arguments
    if name not in SERVERS:
        if name in COMMANDS:
            return txrocketmq([name, *options])
        known = ", ".join(dict.fromkeys((*SERVERS, *COMMANDS)))
        print(
            f"{PROG}: there is no {name!r}; the first argument is one of {known}", file=sys.stderr
        )
        return 2
    # The first process of a container gets no signal that it has not asked for: a container that
    # is stopped while its store is being opened would else be killed after a while.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        line = prepared(name, options, os.environ, Path.home())
        code: int = import_module(SERVERS[name].module).main(line)
    except ConfigError as error:
        print(f"{PROG}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGTERM
    return code


def prepared(
    name: str, options: Sequence[str], environment: Mapping[str, str], home: Path
) -> list[str]:
    """Writes the file of settings; returns the arguments of the server's command.

    Raises ConfigError, and SystemExit for wrong usage and --help.
    """
    server = SERVERS[name]
    flags = vars(import_module(server.module).parse_arguments(options))
    given = of_environment(name, environment)
    defaults = {key: text.format(home=home) for key, text in server.defaults.items()}
    files = (flags.get(name) for name in ("configFile", "config", "proxyConfigPath"))
    named = next(filter(None, files), environment.get(CONF))
    settings = {**defaults, **_of_file(server, named, environment), **given}
    file = home / "conf" / server.file
    words = _ports(server, settings, flags)
    if load_tls(environment, settings)[0].server_mode == ENFORCING:
        words.append(ENCRYPTED)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _write_private(file, server.write(settings))
        ports_file(home).write_text(" ".join(words), "utf-8")
    except OSError as error:
        raise ConfigError(
            f"{file.parent} cannot be written to: {error.strerror}. With a root file system that is"
            " read-only, mount a tmpfs there"
        ) from error
    return [*server.options, *options, server.flag, str(file)]


def _write_private(path: Path, text: str) -> None:
    """Writes a file that its owner alone may read, since the settings of accounts are secrets."""
    path.unlink(missing_ok=True)
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def of_environment(name: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings that the environment has for this server.

    Raises ConfigError for one that does not exist or is of another server, and for a value that
    is not valid.
    """
    server = SERVERS[name]
    found = {}
    for variable, value in environment.items():
        if not variable.startswith("ROCKETMQ_") or variable in _OTHERS:
            continue
        if _KUBERNETES.fullmatch(variable):
            continue
        if not variable.startswith(server.prefix):
            raise ConfigError(
                f"{variable} is not a setting of {name}: write {server.prefix} and a name of"
                f" docs/config.md, spelled as there; the only others are {CONF} and {CONF_WAIT}"
            )
        found[variable.removeprefix(server.prefix)] = value
    others = {key: value for key, value in found.items() if key not in TLS_KEYS}
    try:
        _, unknown = load_all(server.classes, others)
    except ConfigError as error:
        raise ConfigError(f"{server.prefix}...: {error}") from error
    for each in unknown:
        hint = f"; did you mean {server.prefix}{each.nearest}?" if each.nearest else ""
        raise ConfigError(f"{server.prefix}{each.key}: there is no setting {each.key}{hint}")
    if name == "standalone" and environment.get("NAMESRV_ADDR"):
        raise ConfigError(
            "NAMESRV_ADDR is for mqbroker: standalone has a name server of its own, and its broker"
            " registers with no other"
        )
    return found


def _of_file(
    server: Server, named: str | None, environment: Mapping[str, str]
) -> Mapping[str, str]:
    """Returns the settings of the file, if one is named or mounted. Raises ConfigError."""
    path = Path(named) if named else MOUNTED / server.file
    text = environment.get(CONF_WAIT, "")
    if text:
        if not text.isdecimal():
            raise ConfigError(f"{CONF_WAIT} must be a whole number of seconds, not {text!r}")
        _await(path, int(text))
    return server.read(path) if named or path.exists() else {}


def _await(path: Path, seconds: int) -> None:
    """Waits until the file is there and complete, that is, until its last line ends."""
    deadline = time.monotonic() + seconds
    while not (path.is_file() and path.read_bytes().endswith(b"\n")):
        if time.monotonic() >= deadline:
            raise ConfigError(
                f"{path} was not there within {seconds} seconds, which {CONF_WAIT} allows, or its"
                " last line did not end with a newline"
            )
        time.sleep(_LOOK_S)


def _ports(server: Server, settings: Mapping[str, str], flags: Mapping[str, Any]) -> list[str]:
    """Returns the ports that the server will answer at, but no port 0, which means any free one."""
    parts, _ = load_all(server.classes, settings)
    if server.grpc:
        port = int(flags["grpc_port"] or parts[0].grpc_server_port)
        return [f"{GRPC}{port}"] if port else []
    own = flags.get("broker_port")
    ports = [parts[0].listen_port if own is None else own, flags.get("namesrv_port", 0)]
    return [str(port) for port in ports if port]


if __name__ == "__main__":
    sys.exit(main())
