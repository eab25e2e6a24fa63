# SPDX-License-Identifier: Apache-2.0
"""The command `mqnamesrv`: flags and configuration file as the original's (NamesrvStartup)."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence

from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.remoting.config_file import (
    ConfigError,
    Configuration,
    ignored_keys,
    load,
    read_file,
)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The flags of mqnamesrv."""
    parser = argparse.ArgumentParser(
        prog="mqnamesrv",
        description="RocketMQ name server: tells clients which brokers have a topic.",
    )
    parser.add_argument(
        "-c", "--configFile", metavar="FILE", help="name server configuration, a .properties file"
    )
    parser.add_argument(
        "-p", "--printConfigItem", action="store_true", help="print all settings and exit"
    )
    parser.add_argument(
        "-n",
        "--namesrvAddr",
        metavar="ADDR",
        help="accepted and without effect, as in the original",
    )
    return parser.parse_args(arguments)


def configure(path: str | None) -> Configuration:
    """Settings of a file; what has no effect is said on standard error. Raises ConfigError."""
    if path is None:
        return Configuration((NamesrvConfig(),), {})
    given = read_file(path)
    try:
        config, unknown = load(NamesrvConfig, given)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    for key in unknown:
        print(f"mqnamesrv: {path}: {key}", file=sys.stderr)
    ignored = ignored_keys(NamesrvConfig, given)
    if ignored:
        print(
            f"mqnamesrv: {path}: accepted, without effect here: {', '.join(ignored)}",
            file=sys.stderr,
        )
    return Configuration((dataclasses.replace(config, config_store_path=path),), given)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs until SIGTERM or SIGINT; the exit code."""
    options = parse_arguments(arguments)
    try:
        configuration = configure(options.configFile)
    except ConfigError as error:
        print(f"mqnamesrv: {error}", file=sys.stderr)
        return 1
    if options.printConfigItem:
        for key, value in sorted(configuration.properties.items()):
            print(f"{key}={value}")
        return 0
    from txrocketmq.namesrv.service import NameServer
    from txrocketmq.remoting.transport.run import run_service

    config = configuration.get(NamesrvConfig)
    return run_service("mqnamesrv", NameServer(config, configuration=configuration))


if __name__ == "__main__":
    sys.exit(main())
