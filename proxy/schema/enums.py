# SPDX-License-Identifier: Apache-2.0
"""The enumerations of apache.rocketmq.v2 but for the codes of statuses."""

from __future__ import annotations

from enum import IntEnum


class TransactionResolution(IntEnum):
    """How a transaction ended; a client that does not know leaves it open."""

    TRANSACTION_RESOLUTION_UNSPECIFIED = 0
    COMMIT = 1
    ROLLBACK = 2


class TransactionSource(IntEnum):
    """Whether a client ends a transaction by itself or because it was asked."""

    SOURCE_UNSPECIFIED = 0
    SOURCE_CLIENT = 1
    SOURCE_SERVER_CHECK = 2


class Permission(IntEnum):
    """What may be done with a queue."""

    PERMISSION_UNSPECIFIED = 0
    NONE = 1
    READ = 2
    WRITE = 3
    READ_WRITE = 4


class FilterType(IntEnum):
    """The language of a filter expression."""

    FILTER_TYPE_UNSPECIFIED = 0
    TAG = 1
    SQL = 2


class AddressScheme(IntEnum):
    """What the hosts of endpoints are."""

    ADDRESS_SCHEME_UNSPECIFIED = 0
    IPv4 = 1
    IPv6 = 2
    DOMAIN_NAME = 3


class MessageType(IntEnum):
    """The kind of a message, and what a topic takes."""

    MESSAGE_TYPE_UNSPECIFIED = 0
    NORMAL = 1
    FIFO = 2
    DELAY = 3
    TRANSACTION = 4
    LITE = 5
    PRIORITY = 6


class DigestType(IntEnum):
    """The function that a digest of a body was made with."""

    DIGEST_TYPE_UNSPECIFIED = 0
    CRC32 = 1
    MD5 = 2
    SHA1 = 3


class ClientType(IntEnum):
    """What a client is."""

    CLIENT_TYPE_UNSPECIFIED = 0
    PRODUCER = 1
    PUSH_CONSUMER = 2
    SIMPLE_CONSUMER = 3
    PULL_CONSUMER = 4
    LITE_PUSH_CONSUMER = 5
    LITE_SIMPLE_CONSUMER = 6


class Encoding(IntEnum):
    """How a body is compressed."""

    ENCODING_UNSPECIFIED = 0
    IDENTITY = 1
    GZIP = 2


class Language(IntEnum):
    """The language that a client is written in."""

    LANGUAGE_UNSPECIFIED = 0
    JAVA = 1
    CPP = 2
    DOT_NET = 3
    GOLANG = 4
    RUST = 5
    PYTHON = 6
    PHP = 7
    NODE_JS = 8
    RUBY = 9
    OBJECTIVE_C = 10
    DART = 11
    KOTLIN = 12


class LiteSubscriptionAction(IntEnum):
    """What is done to a subscription to lite topics."""

    PARTIAL_ADD = 0
    PARTIAL_REMOVE = 1
    COMPLETE_ADD = 2
    COMPLETE_REMOVE = 3


class QueryOffsetPolicy(IntEnum):
    """Which offset of a queue is asked for."""

    BEGINNING = 0
    END = 1
    TIMESTAMP = 2


class Policy(IntEnum):
    """Where reading of a lite topic begins."""

    LAST = 0
    MIN = 1
    MAX = 2
