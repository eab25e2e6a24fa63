# SPDX-License-Identifier: Apache-2.0
"""The command `mqnamesrv`: flags and configuration file as the original's."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.remoting.config_file import (
    ConfigError,
    as_properties,
    ignored_keys,
    load,
    read_properties,
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


def configure(path: str | None) -> NamesrvConfig:
    """Settings of a file; what has no effect is said on standard error. Raises ConfigError."""
    if path is None:
        return NamesrvConfig()
    try:
        values = read_properties(Path(path).read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the configuration file {path}: {error}") from None
    config, unknown = load(NamesrvConfig, values)
    for key in unknown:
        print(f"mqnamesrv: {path}: {key}", file=sys.stderr)
    ignored = ignored_keys(NamesrvConfig, values)
    if ignored:
        print(f"mqnamesrv: {path}: without effect here: {', '.join(ignored)}", file=sys.stderr)
    return config


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs until SIGTERM or SIGINT; the exit code."""
    options = parse_arguments(arguments)
    try:
        config = configure(options.configFile)
    except ConfigError as error:
        print(f"mqnamesrv: {error}", file=sys.stderr)
        return 1
    if options.printConfigItem:
        for key, value in as_properties(config).items():
            print(f"{key}={value}")
        return 0
    from txrocketmq.namesrv.service import NameServer  # noqa: PLC0415 - --help need not wait for it
    from txrocketmq.remoting.transport.run import run_service  # noqa: PLC0415

    return run_service("mqnamesrv", NameServer(config))


if __name__ == "__main__":
    sys.exit(main())
