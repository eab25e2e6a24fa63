# SPDX-License-Identifier: Apache-2.0
"""The numbers that everything rests on."""

from __future__ import annotations

import pytest

from txrocketmq.remoting import protocol
from txrocketmq.remoting.call import CALLS
from txrocketmq.remoting.codes import (
    SERVED_VERSION,
    LanguageCode,
    MQVersion,
    RequestCode,
    ResponseCode,
    SerializeType,
    code_name,
    version_name,
)

NAMESRV_4_9_7 = (
    """100 101 102 103 104 105 106 205 206 216 219 224 304 311 312 313 318 319 322 327"""
)
NAMESRV_5_4 = "217 901 904"
BROKER_4_9_7 = """
10 11 12 14 15 17 21 25 26 28 29 30 31 32 33 34 35 36 37 38 41 42 43 45 46 50 51 52 53 54 200 201
202 203 204 207 208 215 222 223 300 303 305 306 307 308 309 310 314 315 316 317 320 321 323 324 325
328 329
"""
BROKER_5_4 = """
18 60 61 225 343 345 351 352 353 354 355 361 370 400 401 402 513 905 906 907 908 1007 1008 2001 2002
2003 2004 3001 3002 3003 3004 3005 3006 3007 3008 3009 3010 5001 200050 200051 200052 200053 200054
200055 200056 200151
"""
CLIENT = "39 40 220 221 307 309 326"


@pytest.mark.parametrize("numbers", [NAMESRV_4_9_7, NAMESRV_5_4, BROKER_4_9_7, BROKER_5_4, CLIENT])
def test_all_that_the_originals_serve_is_named_and_declared(numbers: str) -> None:
    """As registered with the processors of 4.9.7 and, beyond that, 5.4.0."""
    assert protocol.__all__  # importing it declares all calls
    unnamed = [n for n in map(int, numbers.split()) if n not in set(RequestCode)]
    undeclared = [n for n in map(int, numbers.split()) if n not in CALLS]
    assert (unnamed, undeclared) == ([], [])


@pytest.mark.parametrize(
    ("code", "number"),
    [
        (RequestCode.SEND_MESSAGE, 10),
        (RequestCode.PULL_MESSAGE, 11),
        (RequestCode.HEART_BEAT, 34),
        (RequestCode.REGISTER_BROKER, 103),
        (RequestCode.GET_ROUTEINFO_BY_TOPIC, 105),
        (RequestCode.SEND_MESSAGE_V2, 310),
        (RequestCode.SEND_BATCH_MESSAGE, 320),
        (RequestCode.LITE_PULL_MESSAGE, 361),
        (RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, 50),
        (RequestCode.POP_MESSAGE, 200050),
        (ResponseCode.SYSTEM_ERROR, 1),
        (ResponseCode.FLUSH_DISK_TIMEOUT, 10),
        (ResponseCode.PULL_NOT_FOUND, 19),
        (ResponseCode.QUERY_NOT_FOUND, 22),
        (ResponseCode.INVALID_PARAMETER, 29),
        (ResponseCode.GO_AWAY, 1500),
        (LanguageCode.JAVA, 0),
        (LanguageCode.PYTHON, 3),
        (LanguageCode.GO, 9),
        (SerializeType.ROCKETMQ, 1),
        (MQVersion.V4_9_7, 407),
        (MQVersion.V5_4_0, 493),
    ],
)
def test_numbers_are_the_originals(code: int, number: int) -> None:
    assert code == number


def test_no_number_has_two_names() -> None:
    of_4_9 = {209, 210, 211}  # have another meaning in answers about accounts
    for kind in (RequestCode, ResponseCode, LanguageCode, MQVersion):
        names = [code for code in kind.__members__.values() if code not in of_4_9]
        assert len(names) == len(set(names)), kind


def test_the_version_told() -> None:
    assert SERVED_VERSION is MQVersion.V5_4_0


def test_versions_have_names() -> None:
    for version in MQVersion:
        if version >= MQVersion.V4_1_0_SNAPSHOT:
            assert version_name(version) == version.name
    assert version_name(400) == "V4_9_4_SNAPSHOT"
    assert version_name(383) == "V4_8_5"
    assert version_name(121) == "v121"


def test_requests_have_names() -> None:
    assert code_name(RequestCode.HEART_BEAT) == "HEART_BEAT"
    assert code_name(9999) == "request 9999"
