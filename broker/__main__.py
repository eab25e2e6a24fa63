# SPDX-License-Identifier: Apache-2.0
"""The command `mqbroker`, with the original's options and configuration file.

Java: BrokerStartup.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import ASYNC_MASTER, SLAVE, SYNC_MASTER, StoreConfig
from txrocketmq.remoting.primitives.value_text import all_shown
from txrocketmq.remoting.process.out_of_memory import ends_without_memory
from txrocketmq.remoting.process.without_pyopenssl import leave_out_pyopenssl
from txrocketmq.remoting.settings.config_file import (
    ConfigError,
    Configuration,
    as_properties,
    load_all,
    read_file,
)
from txrocketmq.remoting.settings.idle_settings import tell_idle
from txrocketmq.remoting.settings.option_parser import OptionParser
from txrocketmq.remoting.settings.service_options import add_service_options, service_options
from txrocketmq.remoting.settings.tls import TlsConfig, load_tls

if TYPE_CHECKING:
    from txrocketmq.broker.controller.identity_file import IdentityFile
    from txrocketmq.broker.controller.session import ControllerSession

IMPORTANT = frozenset(
    """
    accessMessageInMemoryMaxRatio aclEnable autoCreateSubscriptionGroup autoCreateTopicEnable
    brokerClusterName brokerIP1 brokerId brokerName brokerRole cleanFileForciblyEnable
    deleteFileBatchMax deleteWhen fileReservedTime flushDiskType flushIntervalCommitLog listenPort
    maxTransferBytesOnMessageInDisk maxTransferBytesOnMessageInMemory
    maxTransferCountOnMessageInDisk maxTransferCountOnMessageInMemory messageIndexEnable
    messageIndexSafe msgTraceTopicName namesrvAddr rejectTransactionMessage storePathCommitLog
    storePathRootDir traceTopicEnable
    """.split()
)
"""The settings that -m prints: those that the original marks with @ImportantField."""
_OF_ROLE = ("brokerRole", "brokerId", "haMasterAddress")
MASTER_ID = 0
"""The brokerId of a master, which is used whatever the file says."""


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parses the command line of mqbroker."""
    parser = OptionParser(
        "mqbroker", "Run a RocketMQ broker, which stores messages and delivers them."
    )
    parser.add_argument(
        "-c",
        "--configFile",
        metavar="FILE",
        help="The configuration file of the broker, a .properties file.",
    )
    parser.add_argument(
        "-n",
        "--namesrvAddr",
        metavar="ADDR",
        help="Addresses of name servers as HOST:PORT, separated by semicolons (default:"
        " namesrvAddr of the file, or $NAMESRV_ADDR).",
    )
    parser.add_argument(
        "-p", "--printConfigItem", action="store_true", help="Print all settings and exit."
    )
    parser.add_argument(
        "-m",
        "--printImportantConfig",
        action="store_true",
        help="Print the important settings and exit.",
    )
    add_service_options(parser)
    return parser.parse_args(arguments)


def configure(
    path: str | None, namesrv_addr: str | None
) -> tuple[Any, Any, TlsConfig, dict[str, str]]:
    """Reads a configuration file and returns the settings of broker, store and TLS, and the file's
    own values, without those about TLS.

    Settings without effect are named on standard error. Raises ConfigError.
    """
    try:
        tls, given = load_tls(os.environ, read_file(path) if path is not None else {})
        (config, store_config), unknown = load_all((BrokerConfig, StoreConfig), _roleless(given))
    except ConfigError as error:
        raise error if path is None else ConfigError(f"{path}: {error}") from None
    tell_idle("mqbroker", path, unknown, (BrokerConfig, StoreConfig), given)
    if store_config.ha_listen_port <= 0 < config.listen_port:
        store_config = dataclasses.replace(store_config, ha_listen_port=config.listen_port + 1)
    changes: dict[str, Any] = {"broker_config_path": path or ""}
    if config.enable_controller_mode:
        changes["broker_id"] = MASTER_ID
    elif store_config.is_slave:
        _check_slave(path or "", config.broker_id)
    else:
        changes["broker_id"] = MASTER_ID
        if config.broker_id != MASTER_ID:
            _check_id(path or "", config.broker_id, given)
    _check_strict(path or "", config, store_config)
    _check_in_sync(path or "", config, store_config)
    for line, needed in _unused(config, store_config):
        print(f"mqbroker: {path}: {line} is not used: it needs {needed}", file=sys.stderr)
    addresses = namesrv_addr or config.namesrv_addr or os.environ.get("NAMESRV_ADDR", "")
    if addresses:
        changes["namesrv_addr"] = addresses
    return dataclasses.replace(config, **changes), store_config, tls, given


def _roleless(given: dict[str, str]) -> dict[str, str]:
    """The values of a file, without those about the role if a controller decides about it."""
    if given.get("enableControllerMode", "").strip().lower() != "true":
        return given
    left = {key: each for key, each in given.items() if key not in _OF_ROLE}
    return {**left, "brokerRole": SYNC_MASTER}


def for_term(
    config: BrokerConfig, store_config: StoreConfig, session: ControllerSession
) -> tuple[BrokerConfig, StoreConfig]:
    """The settings of a broker for what a controller has decided."""
    term, broker_id = session.term, session.identity.broker_id
    if term is not None and term.is_master:
        return config, store_config
    return (
        dataclasses.replace(config, broker_id=broker_id or 1),
        dataclasses.replace(store_config, broker_role=SLAVE),
    )


def identity_file(config: BrokerConfig, store_config: StoreConfig) -> IdentityFile:
    """The id that a controller has given this broker; raises ValueError, OSError."""
    from txrocketmq.broker.controller.identity_file import IdentityFile  # it imports Twisted

    path = store_config.beside(store_config.store_path_broker_identity, "brokerIdentity")
    found = IdentityFile(Path(path), config.broker_cluster_name, config.broker_name)
    found.load()
    return found


def _check_slave(path: str, broker_id: int) -> None:
    """Raises ConfigError if this cannot be the id of a slave."""
    if broker_id <= MASTER_ID:
        raise ConfigError(
            f"{path}: Slave's brokerId must be > 0, not {broker_id}: write brokerId=1, or a number"
            " that no other slave of this brokerName has"
        )


def _check_in_sync(path: str, config: BrokerConfig, store_config: StoreConfig) -> None:
    """Raises ConfigError if nobody says which brokers are in sync."""
    if store_config.all_ack_in_sync_state_set and not config.enable_controller_mode:
        raise ConfigError(
            f"{path}: allAckInSyncStateSet=true needs enableControllerMode=true: otherwise nobody"
            " says which brokers are in sync"
        )


def _check_strict(path: str, config: BrokerConfig, store_config: StoreConfig) -> None:
    """Raises ConfigError if no queue could ever be locked."""
    is_alone = not config.enable_slave_acting_master
    if config.lock_in_strict_mode and is_alone and store_config.total_replicas > 1:
        raise ConfigError(
            f"{path}: lockInStrictMode=true with totalReplicas={store_config.total_replicas} needs"
            " enableSlaveActingMaster=true: otherwise this broker does not look for the others,"
            " and no queue would ever be locked"
        )


def _unused(config: BrokerConfig, store_config: StoreConfig) -> Iterator[tuple[str, str]]:
    """Settings about brokers in sync that change nothing with the others, and what they need."""
    if config.enable_controller_mode:
        return
    auto, least = store_config.enable_auto_in_sync_replicas, store_config.min_in_sync_replicas
    needed = []
    if store_config.broker_role == ASYNC_MASTER:
        needed.append(f"brokerRole={SYNC_MASTER}")
    if not config.enable_slave_acting_master:
        needed.append("enableSlaveActingMaster=true")
    if auto and needed:
        yield "enableAutoInSyncReplicas=true", " and ".join(needed)
    if not auto:
        needed.append("enableAutoInSyncReplicas=true")
    if least > 1 and needed:
        yield f"minInSyncReplicas={least}", " and ".join(needed)


def _check_id(path: str, broker_id: int, given: Mapping[str, str]) -> None:
    """Says that a master has another id than the file has; ConfigError if a slave may be meant."""
    if "brokerRole" not in given:
        raise ConfigError(
            f"{path}: brokerId={broker_id} without brokerRole would be a second master of its name;"
            " write brokerId=0, or say with brokerRole what it is"
        )
    print(
        f"mqbroker: {path}: brokerId={broker_id} is not used: a master has the id {MASTER_ID}",
        file=sys.stderr,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the broker until a signal stops it, and returns the exit code."""
    options = parse_arguments(arguments)
    with ends_without_memory("mqbroker"):
        return run(options)


def run(options: argparse.Namespace) -> int:
    """Does what `main` does, with options that are parsed already."""
    try:
        read = [configure(options.configFile, options.namesrvAddr)]
    except ConfigError as error:
        print(f"mqbroker: {error}", file=sys.stderr)
        return 1
    config, store_config, *_ = read[0]
    if options.printConfigItem or options.printImportantConfig:
        values = {**as_properties(config), **as_properties(store_config)}
        for key, value in all_shown(values).items():
            if options.printConfigItem or key in IMPORTANT:
                print(f"{key}={value}")
        return 0
    if not config.namesrv_addr:
        print(
            "mqbroker: no name server is given (-n, namesrvAddr or NAMESRV_ADDR):"
            " clients will not find this broker by its topics",
            file=sys.stderr,
        )
    leave_out_pyopenssl()
    # Here, since --help need not wait for it:
    from txrocketmq.remoting.host.reactor.own_reactor import install_reactor

    install_reactor()
    from txrocketmq.broker.process import BrokerProcess, ControlledProcess
    from txrocketmq.broker.service import Broker
    from txrocketmq.remoting.host.run import reactor, run_service, stop_running

    def make(session: ControllerSession | None = None) -> Broker:
        now = read.pop() if read else configure(options.configFile, options.namesrvAddr)
        config, store_config, tls, given = now
        if session is not None:
            config, store_config = for_term(config, store_config, session)
        configuration = Configuration((config, store_config), given)
        return Broker(config, store_config, configuration=configuration, tls=tls, session=session)

    give_up = partial(stop_running, reactor)
    try:
        if config.enable_controller_mode:
            identity = identity_file(config, store_config)
            process: BrokerProcess = ControlledProcess(make, give_up, config, identity, read[0][2])
        else:
            process = BrokerProcess(make, give_up)
    except (ValueError, OSError) as error:  # such as a kernel that is wanted and not there
        print(f"mqbroker: {error}", file=sys.stderr)
        return 1
    code = run_service(
        "mqbroker", process, service_options(options), addresses=lambda: process.address
    )
    return code or int(process.has_failed)


if __name__ == "__main__":
    sys.exit(main())
