# SPDX-License-Identifier: Apache-2.0
"""The Spark source and sink with original brokers that want accounts (ACL 1, ACL 2) and encryption.

Readers and writers are called as Spark calls them, without a session.
"""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from compat_tests.engine import Engine
from compat_tests.jars import RELEASES
from compat_tests.peers import Broker, NameServer, Original, running
from compat_tests.test_python_secured import ACL_2, PASSWORD, Closed
from txrocketmq.spark.errors import ClusterError
from txrocketmq.spark.live.batch import LiveReader
from txrocketmq.spark.options import SourceOptions
from txrocketmq.spark.output import Output
from txrocketmq.spark.sink.writer import BatchWriter

ROWS = 500
TOPIC = "Guarded"
USER = "pythonist"
"""ACL 1 wants names of more than six letters."""
SCHEMA = StructType([StructField("body", BinaryType()), StructField("tags", StringType())])
ACCOUNT = {"accessKey": USER, "secretKey": PASSWORD}
PLAIN_ACL = f"""\
accounts:
  - accessKey: {USER}
    secretKey: {PASSWORD}
    whiteRemoteAddress:
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms:
      - {TOPIC}=PUB|SUB
      - TBW102=PUB|SUB
"""


@pytest.fixture(scope="module", params=RELEASES)
def secured(request: pytest.FixtureRequest, engine: Engine, work_folder: Path) -> Iterator[Broker]:
    """A broker that wants an account: 4.9 by ACL 1, 5.x by ACL 2; both encrypt for who asks."""
    release: str = request.param
    origin = Original(release, engine)
    folder = work_folder / f"spark-secured-{release}"
    names = NameServer(origin, work_folder / f"spark-secured-namesrv-{release}")
    if release.startswith("4."):
        settings = {"aclEnable": "true"}
        (folder / "conf").mkdir(parents=True)
        (folder / "conf" / "plain_acl.yml").write_text(PLAIN_ACL)
    else:
        settings = {
            **ACL_2,
            "authConfigPath": str(folder / "auth"),
            "initAuthenticationUser": f'{{"username":"{USER}","password":"{PASSWORD}"}}',
        }
    broker = Closed(origin, folder, names, "broker-s", settings)
    with running(names, broker):
        yield broker


def of(broker: Broker, **more: str) -> SourceOptions:
    own = {"nameServer": broker.name_server.address, "topic": TOPIC}
    return SourceOptions.of({**own, **more})


def write(broker: Broker, **more: str) -> int:
    """What a task and the driver do."""
    writer = BatchWriter(of(broker, sendTimeoutMs="20000", **more), SCHEMA, overwrite=False)
    task: Any = pickle.loads(pickle.dumps(writer))  # noqa: S301 - our own
    bodies = pa.array([b"%d" % number for number in range(ROWS)], pa.binary())
    rows = pa.RecordBatch.from_arrays([bodies, pa.array(["A"] * ROWS)], names=SCHEMA.names)
    written: Any = task.write(iter([rows]))
    writer.commit([written])
    return int(written.sent)


def read(broker: Broker, **more: str) -> list[bytes]:
    options = of(broker, pullTimeoutMs="20000", columns="body", **more)
    reader = LiveReader(options, Output.of(options))
    task: LiveReader = pickle.loads(pickle.dumps(reader))  # noqa: S301 - our own
    found = [batch for part in reader.partitions() for batch in task.read(part)]
    return [body for batch in found for body in batch.column("body").to_pylist()]


@pytest.mark.timeout(240)
def test_an_account_writes_and_reads_encrypted_or_not(secured: Broker) -> None:
    assert write(secured, **ACCOUNT) == ROWS
    assert write(secured, **ACCOUNT, useTls="true") == ROWS
    expected = sorted(2 * [b"%d" % number for number in range(ROWS)])
    assert sorted(read(secured, **ACCOUNT)) == expected
    assert sorted(read(secured, **ACCOUNT, useTls="true")) == expected


@pytest.mark.timeout(240)
@pytest.mark.parametrize("wrong", [{}, {**ACCOUNT, "secretKey": "wrong-one"}])
def test_others_are_refused(secured: Broker, wrong: dict[str, str]) -> None:
    with pytest.raises(ClusterError, match=r"refused SEND|not be sent in 1 attempts"):
        write(secured, sendRetries="0", **wrong)
    write(secured, **ACCOUNT)
    with pytest.raises(ClusterError, match=r"refused GET_(MIN|MAX)_OFFSET|refused PULL_MESSAGE"):
        read(secured, **wrong)
