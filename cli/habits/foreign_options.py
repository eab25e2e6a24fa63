# SPDX-License-Identifier: Apache-2.0
"""What options of kcat, rpk and Kafka's own tools are called here, or how that is done.

An option that a command has is its own, whatever it means elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from txrocketmq.remoting.arguments.foreign import Foreign, table_of

FOREIGN_OPTIONS: Final = (
    Foreign(
        "-b --brokers --broker-list --bootstrap-server --bootstrap-servers --name-server",
        "--namesrv", "which names name servers, as in 127.0.0.1:9876",
    ),
    Foreign("-t --topic --topics", "", "topics stand by themselves, as in 'txrocketmq tail"
        " Orders' or 'txrocketmq topics show Orders'"),
    Foreign("-p --partition --partitions", "--queue --queues", "",
        "queues are chosen by the brokers and clients"),
    Foreign("-o --offset --offsets", "--from", "which takes first, last or a time; --last N"
        " begins with the last N messages", "txrocketmq offsets shows and resets offsets"),
    Foreign("--from-beginning --earliest --to-earliest --to-latest --from-latest",
        "--from --to", "which takes first, last or a time",
        "txrocketmq tail TOPIC --from first prints all messages"),
    Foreign("-c --max-messages --num --limit", "--count", "",
        "txrocketmq tail TOPIC --count N stops after N messages"),
    Foreign("-e --exit --exit-on-end", "--no-follow --timeout", "",
        "txrocketmq tail TOPIC --no-follow stops after the messages that are there"),
    Foreign("--timeout-ms --consumer-timeout-ms", "--timeout", "which is in seconds",
        "txrocketmq tail TOPIC --timeout SECONDS stops when no message arrives"),
    Foreign("-J --format --output --pretty-print", "--json", "",
        "the result is text"),
    Foreign("-D -K --delimiter --key-delimiter --parse-key", "--format",
        "as in -f '%k: %s'", "txrocketmq tail and send take a format"),
    Foreign("-k --message-key --keys", "--key", "", "txrocketmq messages query finds messages"
        " by their key"),
    Foreign("-H --header --headers --message-property", "--property", "as in --property"
        " source=web", "txrocketmq tail prints properties with --json"),
    Foreign("-l --input --payload-file", "--file", "each of whose lines is a message",
        "txrocketmq send takes a file"),
    Foreign("-g -G --group --groups --group-id --consumer-group", "--group", "",
        "groups stand by themselves, as in 'txrocketmq lag billing', and 'txrocketmq consume TOPIC"
        " --group GROUP' reads as a member of one"),
    Foreign("-C --consume", "", "'txrocketmq tail TOPIC' prints messages, and 'txrocketmq"
        " consume TOPIC --group GROUP' takes them from a group"),
    Foreign("-P --produce", "", "'txrocketmq send TOPIC -' sends the lines of its input"),
    Foreign("-L --list --describe --create --alter --delete", "", "'txrocketmq status' shows"
        " the cluster, and topics and groups have the commands list, show, create, update and"
        " delete"),
    Foreign("-Q --get-offsets", "", "'txrocketmq topics show TOPIC' has the offsets of all"
        " queues, and tail --from takes a time"),
    Foreign("--reset-offsets", "", "'txrocketmq offsets reset GROUP TOPIC --to WHERE' does"),
    Foreign("-F --profile --config-file --command-config --consumer.config --producer.config"
        " --consumer-config --producer-config", "--context", "which names a cluster of"
        " 'txrocketmq contexts'", "'txrocketmq contexts' has the addresses of several clusters"),
    Foreign("-X --user --username --password --sasl-mechanism --consumer-property"
        " --producer-property --pass", "--access-key", "with --secret-key-file, for an account;"
        " other settings are options of their own", "settings are options of their own"),
    Foreign("-z --compression --compression-codec", "", "large bodies are compressed, and"
        " decompressed, without being asked for"),
    Foreign("-q -u -O --quiet --unbuffered --print-headers", "", "what is printed is said by"
        " --format and --json"),
    Foreign("-Z --tombstone --null", "", "RocketMQ has no tombstones, and bodies may be"
        " empty"),
    Foreign("--acks --request-required-acks --delivery-timeout", "", "each send waits until"
        " the broker has stored the message"),
    Foreign("--replicas --replication-factor", "", "a slave copies all topics of its master"),
    Foreign("--config --topic-config --add-config", "--attribute --set", "as NAME=VALUE",
        "'txrocketmq topics update' has the attributes of topics, and 'txrocketmq brokers config'"
        " the settings of brokers"),
    Foreign("-i --internal --print-internal --all-groups --all-topics", "--all", "",
        "names are given one by one"),
    Foreign("-d --detailed --print-summary --members --verbose -v", "",
        "'txrocketmq topics show' and 'txrocketmq groups show' tell more of one"),
    Foreign("--regex", "", "names are written in full, and a shell completes them"),
)  # fmt: skip

_TABLE: Final = table_of(FOREIGN_OPTIONS)


def option_for(name: str, options: Collection[str]) -> str:
    """Returns what to say of another program's option to a command with these, or ""."""
    foreign = _TABLE.get(name)
    return foreign.answer(options) if foreign else ""
