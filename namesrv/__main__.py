# SPDX-License-Identifier: Apache-2.0
"""The command `mqnamesrv`, with the original's options and configuration file.

Java: NamesrvStartup.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Sequence

from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.remoting.process.out_of_memory import ends_without_memory
from txrocketmq.remoting.process.without_pyopenssl import leave_out_pyopenssl
from txrocketmq.remoting.settings.config_file import (
    ConfigError,
    Configuration,
    load,
    read_file,
)
from txrocketmq.remoting.settings.idle_settings import tell_idle
from txrocketmq.remoting.settings.option_parser import OptionParser
from txrocketmq.remoting.settings.service_options import add_service_options, service_options
from txrocketmq.remoting.settings.tls import TlsConfig, load_tls


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parses the command line of mqnamesrv."""
    parser = OptionParser(
        "mqnamesrv", "Run a RocketMQ name server, which tells clients which brokers have a topic."
    )
    parser.add_argument(
        "-c",
        "--configFile",
        metavar="FILE",
        help="The configuration file of the name server, a .properties file.",
    )
    parser.add_argument(
        "-p", "--printConfigItem", action="store_true", help="Print all settings and exit."
    )
    parser.add_argument(
        "-n",
        "--namesrvAddr",
        metavar="ADDR",
        help="Accepted without effect, as in the original.",
    )
    add_service_options(parser)
    return parser.parse_args(arguments)


def configure(path: str | None) -> tuple[Configuration, TlsConfig]:
    """Reads a configuration file, and prints settings without effect. Raises ConfigError."""
    try:
        tls, given = load_tls(os.environ, {} if path is None else read_file(path))
        config, unknown = load(NamesrvConfig, given)
    except ConfigError as error:
        raise error if path is None else ConfigError(f"{path}: {error}") from None
    if path is None:
        return Configuration((config,), given), tls
    tell_idle("mqnamesrv", path, unknown, (NamesrvConfig,), given)
    return Configuration((dataclasses.replace(config, config_store_path=path),), given), tls


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the name server until a signal stops it, and returns the exit code."""
    options = parse_arguments(arguments)
    with ends_without_memory("mqnamesrv"):
        return run(options)


def run(options: argparse.Namespace) -> int:
    """Does what `main` does, with options that are parsed already."""
    try:
        configuration, tls = configure(options.configFile)
    except ConfigError as error:
        print(f"mqnamesrv: {error}", file=sys.stderr)
        return 1
    if options.printConfigItem:
        for key, value in sorted(configuration.shown.items()):
            print(f"{key}={value}")
        return 0
    leave_out_pyopenssl()
    from txrocketmq.remoting.host.reactor.own_reactor import install_reactor

    install_reactor()
    from txrocketmq.namesrv.service import NameServer
    from txrocketmq.remoting.host.run import run_service
    from txrocketmq.remoting.transport.address import address_here, address_text

    config = configuration.get(NamesrvConfig)
    server = NameServer(config, configuration=configuration, tls=tls)
    return run_service(
        "mqnamesrv",
        server,
        service_options(options),
        addresses=lambda: address_text(address_here(config.bind_address), server.port),
    )


if __name__ == "__main__":
    sys.exit(main())
