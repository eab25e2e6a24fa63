# SPDX-License-Identifier: Apache-2.0
"""What options of kcat, rpk and Kafka's own tools are called here, or how that is done.

An option that a command has is its own, whatever it means elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple


class ForeignOption(NamedTuple):
    """Options of other programs that mean the same."""

    names: str
    """Their names, separated by blanks."""
    ours: str = ""
    """Options of ours for it, separated by blanks; the first that a command has."""
    note: str = ""
    """What has to be known about these, or what to do instead."""
    otherwise: str = ""
    """What to do instead with a command that has none of ours."""


FOREIGN_OPTIONS: Final = (
    ForeignOption(
        "-b --brokers --broker-list --bootstrap-server --bootstrap-servers --name-server",
        "--namesrv", "which names name servers, as in 127.0.0.1:9876",
    ),
    ForeignOption("-t --topic --topics", "", "topics stand by themselves, as in 'txrocketmq tail"
        " Orders' or 'txrocketmq topics show Orders'"),
    ForeignOption("-p --partition --partitions", "--queue --queues", "",
        "queues are chosen by the brokers and clients"),
    ForeignOption("-o --offset --offsets", "--from", "which takes first, last or a time; --last N"
        " begins with the last N messages", "txrocketmq offsets shows and resets offsets"),
    ForeignOption("--from-beginning --earliest --to-earliest --to-latest --from-latest",
        "--from --to", "which takes first, last or a time",
        "txrocketmq tail TOPIC --from first prints all messages"),
    ForeignOption("-c --max-messages --num --limit", "--count", "",
        "txrocketmq tail TOPIC --count N stops after N messages"),
    ForeignOption("-e --exit --exit-on-end", "--no-follow --timeout", "",
        "txrocketmq tail TOPIC --no-follow stops after the messages that are there"),
    ForeignOption("--timeout-ms --consumer-timeout-ms", "--timeout", "which is in seconds",
        "txrocketmq tail TOPIC --timeout SECONDS stops when no message arrives"),
    ForeignOption("-J --format --output --pretty-print", "--json", "",
        "the result is text"),
    ForeignOption("-D -K --delimiter --key-delimiter --parse-key", "--format",
        "as in -f '%k: %s'", "txrocketmq tail and send take a format"),
    ForeignOption("-k --message-key --keys", "--key", "", "txrocketmq messages query finds messages"
        " by their key"),
    ForeignOption("-H --header --headers --message-property", "--property", "as in --property"
        " source=web", "txrocketmq tail prints properties with --json"),
    ForeignOption("-l --input --payload-file", "--file", "each of whose lines is a message",
        "txrocketmq send takes a file"),
    ForeignOption("-g -G --group --groups --group-id --consumer-group", "--group", "",
        "groups stand by themselves, as in 'txrocketmq lag billing', and 'txrocketmq consume TOPIC"
        " --group GROUP' reads as a member of one"),
    ForeignOption("-C --consume", "", "'txrocketmq tail TOPIC' prints messages, and 'txrocketmq"
        " consume TOPIC --group GROUP' takes them from a group"),
    ForeignOption("-P --produce", "", "'txrocketmq send TOPIC -' sends the lines of its input"),
    ForeignOption("-L --list --describe --create --alter --delete", "", "'txrocketmq status' shows"
        " the cluster, and topics and groups have the commands list, show, create, update and"
        " delete"),
    ForeignOption("-Q --get-offsets", "", "'txrocketmq topics show TOPIC' has the offsets of all"
        " queues, and tail --from takes a time"),
    ForeignOption("--reset-offsets", "", "'txrocketmq offsets reset GROUP TOPIC --to WHERE' does"),
    ForeignOption("-F --profile --config-file --command-config --consumer.config --producer.config"
        " --consumer-config --producer-config", "--context", "which names a cluster of"
        " 'txrocketmq contexts'", "'txrocketmq contexts' has the addresses of several clusters"),
    ForeignOption("-X --user --username --password --sasl-mechanism --consumer-property"
        " --producer-property --pass", "--access-key", "with --secret-key-file, for an account;"
        " other settings are options of their own", "settings are options of their own"),
    ForeignOption("-z --compression --compression-codec", "", "large bodies are compressed, and"
        " decompressed, without being asked for"),
    ForeignOption("-q -u -O --quiet --unbuffered --print-headers", "", "what is printed is said by"
        " --format and --json"),
    ForeignOption("-Z --tombstone --null", "", "RocketMQ has no tombstones, and bodies may be"
        " empty"),
    ForeignOption("--acks --request-required-acks --delivery-timeout", "", "each send waits until"
        " the broker has stored the message"),
    ForeignOption("--replicas --replication-factor", "", "a slave copies all topics of its master"),
    ForeignOption("--config --topic-config --add-config", "--attribute --set", "as NAME=VALUE",
        "'txrocketmq topics update' has the attributes of topics, and 'txrocketmq brokers config'"
        " the settings of brokers"),
    ForeignOption("-i --internal --print-internal --all-groups --all-topics", "--all", "",
        "names are given one by one"),
    ForeignOption("-d --detailed --print-summary --members --verbose -v", "",
        "'txrocketmq topics show' and 'txrocketmq groups show' tell more of one"),
    ForeignOption("--regex", "", "names are written in full, and a shell completes them"),
)  # fmt: skip

_FOREIGN: Final = {name: each for each in FOREIGN_OPTIONS for name in each.names.split()}


def option_for(name: str, options: Collection[str]) -> str:
    """Returns what to say of another program's option to a command with these, or ""."""
    foreign = _FOREIGN.get(name)
    if foreign is None:
        return ""
    for ours in foreign.ours.split():
        if ours in options:
            return f"it is {ours} here" + (f", {foreign.note}" if foreign.note else "")
    return foreign.otherwise or foreign.note
