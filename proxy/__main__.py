# SPDX-License-Identifier: Apache-2.0
"""The command `txrocketmq proxy`, with the original's options and configuration file.

Java: ProxyStartup.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from txrocketmq.proxy.accounts.config import AccountsConfig
from txrocketmq.proxy.config import MessagingConfig, ProxyConfig
from txrocketmq.proxy.needs import missing
from txrocketmq.remoting.process.out_of_memory import ends_without_memory
from txrocketmq.remoting.process.without_pyopenssl import leave_out_pyopenssl
from txrocketmq.remoting.settings.config_file import (
    LIST_SEPARATOR,
    ConfigError,
    Configuration,
    load_all,
    read_text,
)
from txrocketmq.remoting.settings.idle_settings import tell_idle
from txrocketmq.remoting.settings.option_parser import OptionParser
from txrocketmq.remoting.settings.service_options import add_service_options, service_options
from txrocketmq.remoting.settings.tls import TlsConfig, load_tls

PROG: Final = "txrocketmq proxy"
CLASSES: Final = (ProxyConfig, MessagingConfig, AccountsConfig)


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command line of the proxy."""
    parser = OptionParser(
        PROG, "Run a proxy, which serves clients of RocketMQ 5.x that speak gRPC."
    )
    parser.add_argument(
        "-n",
        "--namesrvAddr",
        metavar="ADDR",
        help="The name servers, as HOST:PORT, separated by semicolons (default: $NAMESRV_ADDR).",
    )
    parser.add_argument(
        "-pc",
        "--proxyConfigPath",
        metavar="FILE",
        help="The configuration file of the proxy, rmq-proxy.json of the original.",
    )
    parser.add_argument(
        "-pm",
        "--proxyMode",
        metavar="MODE",
        help="CLUSTER, the only mode: brokers are reached over the network.",
    )
    parser.add_argument(
        "--grpc-port", metavar="PORT", help="The port to listen on (default: 8081; 0 for any)."
    )
    parser.add_argument(
        "--host", metavar="ADDRESS", help="The address to listen on (default: all addresses)."
    )
    parser.add_argument(
        "-p", "--printConfigItem", action="store_true", help="Print all settings and exit."
    )
    add_service_options(parser)
    return parser


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parses the command line of the proxy."""
    return make_parser().parse_args(arguments)


def read_json(path: str | Path) -> dict[str, str]:
    """Returns the settings of a file of JSON as texts. Raises ConfigError."""
    try:
        values: Any = json.loads(read_text(path))
    except ValueError as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{path} is no JSON: {error}") from None
    if not isinstance(values, dict):
        raise ConfigError(f'{path} must be an object of JSON, such as {{"grpcServerPort": 8081}}')
    return {key: _setting(path, key, value) for key, value in values.items() if value is not None}


def _setting(path: str | Path, key: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return LIST_SEPARATOR.join(value)
    raise ConfigError(f"{path}: {key} must be a text, a number, true or false")


def configure(options: argparse.Namespace) -> tuple[Configuration, TlsConfig]:
    """Returns the settings, and prints those without effect. Raises ConfigError."""
    path = options.proxyConfigPath
    given = {} if path is None else read_json(path)
    flags = {
        "namesrvAddr": options.namesrvAddr,
        "proxyMode": options.proxyMode,
        "grpcServerPort": options.grpc_port,
        "bindAddress": options.host,
    }
    given |= {key: value for key, value in flags.items() if value is not None}
    try:
        tls, given = load_tls(os.environ, given)
        parts, unknown = load_all(CLASSES, given)
    except ConfigError as error:
        raise error if path is None else ConfigError(f"{path}: {error}") from None
    tell_idle(PROG, path, unknown, CLASSES, given)
    return Configuration(parts, given), tls


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the proxy until a signal stops it, and returns the exit code."""
    options = parse_arguments(arguments)
    with ends_without_memory(PROG):
        return run(options)


def run(options: argparse.Namespace) -> int:
    """Does what `main` does, with options that are parsed already."""
    try:
        configuration, tls = configure(options)
    except ConfigError as error:
        print(f"{PROG}: {error}", file=sys.stderr)
        return 1
    if options.printConfigItem:
        for key, value in sorted(configuration.shown.items()):
            print(f"{key}={value}")
        return 0
    if why := missing():
        print(f"{PROG}: {why}", file=sys.stderr)
        return 1
    leave_out_pyopenssl()
    from txrocketmq.remoting.host.reactor.own_reactor import install_reactor

    install_reactor()
    from txrocketmq.proxy.service import Proxy
    from txrocketmq.remoting.host.run import run_service
    from txrocketmq.remoting.transport.address import address_here, address_text

    config = configuration.get(ProxyConfig)
    try:
        proxy = Proxy(
            config,
            configuration.get(MessagingConfig),
            tls=tls,
            accounts=configuration.get(AccountsConfig),
        )
    except ConfigError as error:
        print(f"{PROG}: {error}", file=sys.stderr)
        return 1
    return run_service(
        PROG,
        proxy,
        service_options(options),
        addresses=lambda: address_text(address_here(config.bind_address), proxy.port),
        port_setting="grpcServerPort",
    )


if __name__ == "__main__":
    sys.exit(main())
