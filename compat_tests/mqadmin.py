# SPDX-License-Identifier: Apache-2.0
"""Runs every command of mqadmin against one broker, in a scene that is always the same.

The output of commands is made comparable: addresses, times, ids and values of the machine are
replaced by words, and lines are sorted, since both sides print tables in the order of hash maps.
Files that a command writes count as a part of its output.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from compat_tests.java_client import ClientJvm, Producer, PushConsumer, message
from compat_tests.peers import Broker
from compat_tests.scene import poll

TOPIC = "Orders"
GROUP = "readers"
PRODUCERS = "writers"
KEY = "key-3"
_TIMEOUT_S = 30
_MESSAGES = 8
_QUEUES = 4
"""The number of queues of each topic, except for the group's retry topic, which has one."""


class Command(NamedTuple):
    """A command line of mqadmin without `-n`; the scene replaces words in braces."""

    line: str
    why: str = ""
    """Why our answer may differ; empty if it may not."""
    why_older: str = ""
    """Why our answer may differ from that of 4.9.7."""
    is_measured: bool = False
    """Whether the command prints measured numbers, which are not compared."""
    is_everyday: bool = False
    """Whether the usual run of the tests includes it, too."""

    @property
    def name(self) -> str:
        return self.line.split()[0]

    def reason(self, release: str) -> str:
        """Returns why our answer may differ from this release's; empty if it may not."""
        return self.why or (self.why_older if release.startswith("4.") else "")


_CONTROLLER = "a controller is not served"
_CONTAINER = "there is no container of brokers"
_AUTH = "without accounts; test_accounts.py compares it with accounts"
_ACL = _AUTH
_ROCKSDB = "RocksDB is not served"
_STATIC = "static topics are not served"
_COLD = "the flow control of cold reads is not served"
_RELEASE = "ours has the figures of both releases, and says V5_4_0"
_TOPICS = "each release has system topics of its own"
_OLDER = "ours follows 5.4.0 in this"
_FAILS = "the original fails when there is nothing to tell"
_KEYS = "ours has the keys of both releases, with the defaults of 5.4.0"

COMMANDS = (
    # What there is.
    Command("clusterList", _RELEASE, is_measured=True),
    Command("clusterList -m", is_measured=True, is_everyday=True),
    Command("topicList", _TOPICS),
    Command("topicList -c", _TOPICS),
    Command("topicRoute -t {topic}", is_everyday=True),
    Command("topicRoute -t NoSuchTopic"),
    Command("topicStatus -t {topic}", is_everyday=True),
    Command("topicStatus -t NoSuchTopic"),
    Command("topicClusterList -t {topic}"),
    Command("brokerStatus -b {broker}", _RELEASE, is_measured=True),
    Command("getBrokerConfig -b {broker}", _KEYS, is_everyday=True),
    Command("getNamesrvConfig", f"{_KEYS}, and those of its metrics", is_everyday=True),
    Command("getConsumerConfig -g {group}"),
    Command("getConsumerConfig -g no_such_group"),
    Command("brokerConsumeStats -b {broker}"),
    Command("consumerConnection -g {group}"),
    Command("consumerConnection -g no_such_group"),
    Command("producerConnection -g {producers} -t {topic}"),
    Command("producerConnection -g no_such_group -t {topic}"),
    Command("producer -b {broker}"),
    Command("consumerProgress", is_measured=True),
    Command("consumerProgress -g {group}", is_everyday=True),
    Command("consumerProgress -g {group} -t {topic}"),
    Command("consumerProgress -g no_such_group"),
    Command("consumerStatus -g {group}"),
    Command("statsAll", _TOPICS),
    Command("statsAll -a"),
    Command("haStatus -b {broker}", is_everyday=True),
    Command("haStatus -c DefaultCluster"),
    # Messages.
    Command("queryMsgById -t {topic} -i {offset_id}", is_everyday=True),
    Command("queryMsgById -t {topic} -i 7F00000100002A9F0000000000FFFFFF"),
    Command("queryMsgByKey -t {topic} -k {key}", is_everyday=True),
    Command("queryMsgByKey -t {topic} -k no_such_key"),
    Command("queryMsgByUniqueKey -t {topic} -i {unique_key}", why_older=_OLDER),
    Command("queryMsgByUniqueKey -t {topic} -i 7F000001000000000000000000000000"),
    Command("queryMsgByOffset -t {topic} -b broker-a -i 0 -o 1", why_older=_OLDER),
    Command("queryMsgByOffset -t {topic} -b broker-a -i 0 -o 4711"),
    Command("queryMsgTraceById -i {unique_key}"),
    Command("queryCq -t {topic} -q 0 -i 0 -b {broker}", why_older=_OLDER),
    Command("queryCq -t {topic} -q 0 -i 4711 -b {broker}"),
    Command("queryCq -t {topic} -q 0 -i 0 -b {broker} -g {group}", why_older=_OLDER),
    Command("printMsg -t {topic}", why_older=_OLDER),
    Command(
        "printMsgByQueue -t {topic} -a broker-a -i 0 -p true -d true",
        why_older=_OLDER,
    ),
    Command("consumeMessage -t {topic} -b broker-a -i 0 -o 0 -c 2", why_older=_OLDER),
    Command("sendMessage -t Sent -p hello -k k1 -c tag", is_measured=True),
    Command("sendMessage -t Sent -p hello -b broker-a -i 1"),
    Command("sendMsgStatus -b broker-a -c 2", is_measured=True),
    Command("checkMsgSendRT -t Sent -a 2", is_measured=True),
    Command("allocateMQ -t {topic} -i 10.0.0.1,10.0.0.2"),
    # Topics and groups.
    Command("updateTopic -t New -b {broker} -r 3 -w 3"),
    Command("updateTopic -t NewInCluster -c DefaultCluster"),
    Command("updateTopic -t bad$name -b {broker}", why_older=_OLDER, is_everyday=True),
    Command("updateTopic -t SCHEDULE_TOPIC_XXXX -b {broker}", why_older=_OLDER),
    Command("updateTopic -t New -b {broker} -a +message.type=FIFO"),
    Command("updateTopicList -b {broker} -f {topics_file}"),
    Command("updateTopicPerm -t New -b {broker} -p 4"),
    Command("updateTopicPerm -t NoSuchTopic -b {broker} -p 4"),
    Command("updateOrderConf -t Ordered -m put -v broker-a:4"),
    Command("updateOrderConf -t Ordered -m get"),
    Command("updateOrderConf -t Ordered -m delete"),
    Command("deleteTopic -t New -c DefaultCluster"),
    Command("deleteTopic -t NoSuchTopic -c DefaultCluster"),
    Command("updateSubGroup -g new_group -b {broker} -r 3"),
    Command("updateSubGroup -g new_group -b {broker} --attributes +consume.type=x"),
    Command("updateSubGroupList -b {broker} -f {groups_file}"),
    Command("getConsumerConfig -g new_group"),
    Command("setConsumeMode -b {broker} -t {topic} -g {group} -m PULL"),
    Command("deleteSubGroup -g new_group -b {broker}"),
    Command("deleteSubGroup -g no_such_group -b {broker}"),
    # Offsets.
    Command("cloneGroupOffset -s {group} -d cloned -t {topic}", why_older=_OLDER, is_everyday=True),
    Command("resetOffsetByTime -g {group} -t {topic} -s 0"),
    Command("resetOffsetByTime -g offline -t {topic} -s now", why_older=_OLDER),
    Command("skipAccumulatedMessage -g {group} -t {topic}"),
    # Settings.
    Command("updateBrokerConfig -b {broker} -k longPollingEnable -v false"),
    Command("updateBrokerConfig -b {broker} -k longPollingEnable -v true"),
    Command("updateBrokerConfig -b {broker} -k noSuchKey -v 1", is_everyday=True),
    Command("updateBrokerConfig -b {broker} -k brokerConfigPath -v x", why_older=_OLDER),
    Command("updateBrokerConfig -b {broker} -k sendMessageThreadPoolNums -v 99", is_everyday=True),
    Command(
        "updateBrokerConfig -b {broker} -k maxMessageSize -v 0",
        "a value by which no message could be stored is refused",
        is_everyday=True,
    ),
    Command("updateBrokerConfig -b {broker} -k maxMessageSize -v 4194304", is_everyday=True),
    Command("updateNamesrvConfig -k orderMessageEnable -v true"),
    Command("updateNamesrvConfig -k orderMessageEnable -v false"),
    Command("updateNamesrvConfig -k noSuchKey -v 1", is_everyday=True),
    Command("updateNamesrvConfig -k kvConfigPath -v x", why_older=_OLDER),
    Command("updateKvConfig -s space -k k -v v"),
    Command("deleteKvConfig -s space -k k"),
    Command("deleteKvConfig -s space -k no_such_key"),
    Command("wipeWritePerm -b broker-a", is_measured=True),
    Command("addWritePerm -b broker-a", is_measured=True),
    Command("wipeWritePerm -b no_such_broker"),
    # Cleaning.
    Command("cleanExpiredCQ -b {broker}"),
    Command("cleanUnusedTopic -b {broker}"),
    Command("deleteExpiredCommitLog -b {broker}"),
    Command("resetMasterFlushOffset -b {broker} -o 0", is_everyday=True),
    # Files.
    Command("exportMetadata -c DefaultCluster -f {folder}"),
    Command("exportMetadata -b {broker} -t -f {folder}"),
    Command("exportMetadata -b {broker} -g -f {folder}"),
    Command("exportConfigs -c DefaultCluster -f {folder}", _KEYS, is_everyday=True),
    Command(
        "exportMetrics -c DefaultCluster -f {folder}",
        why_older=_FAILS,
        is_measured=True,
        is_everyday=True,
    ),
    Command("exportPopRecord -b {broker} -d true"),
    Command("exportMetadataInRocksDB -p {folder}/none -t topics"),
    Command("rocksDBConfigToJson -t topics -p {folder}/none"),
    Command("checkRocksdbCqWriteProgress -c DefaultCluster -t {topic}", _ROCKSDB),
    Command("dumpCompactionLog -f {folder}/none"),
    # Features that are not served.
    Command("updateStaticTopic -t Static -qn 4 -c DefaultCluster", _STATIC),
    Command("remappingStaticTopic -t Static -c DefaultCluster", _STATIC),
    Command("addBroker -c {broker} -b broker.conf", _CONTAINER),
    Command("removeBroker -c {broker} -b DefaultCluster:broker-a:0", _CONTAINER),
    Command("getSyncStateSet -a {namesrv} -b broker-a", _CONTROLLER),
    Command("getBrokerEpoch -b broker-a", _CONTROLLER),
    Command("getControllerMetaData -a {namesrv}", _CONTROLLER),
    Command("getControllerConfig -a {namesrv}", _CONTROLLER),
    Command("updateControllerConfig -a {namesrv} -k k -v v", _CONTROLLER),
    Command("electMaster -a {namesrv} -b 1 -bn broker-a -c DefaultCluster", _CONTROLLER),
    Command("cleanBrokerMetadata -a {namesrv} -bn broker-a -c DefaultCluster", _CONTROLLER),
    Command("getColdDataFlowCtrInfo -b {broker}", _COLD),
    Command("updateColdDataFlowCtrGroupConfig -b {broker} -g {group} -v 1", _COLD),
    Command("removeColdDataFlowCtrGroupConfig -b {broker} -g {group}", _COLD),
    Command("setCommitLogReadAheadMode -b {broker} -m 1", _COLD),
    Command("switchTimerEngine -b {broker} -e F"),
    Command("createUser -b {broker} -u u -p password", _AUTH),
    Command("updateUser -b {broker} -u u -p password2", _AUTH),
    Command("getUser -b {broker} -u u", _AUTH),
    Command("listUser -b {broker}", _AUTH),
    Command("copyUser -f {broker} -t {broker} -u u", _AUTH),
    Command("createAcl -b {broker} -s User:u -r Topic:T -a Pub -d Allow", _AUTH),
    Command("updateAcl -b {broker} -s User:u -r Topic:T -a Sub -d Allow", _AUTH),
    Command("getAcl -b {broker} -s User:u", _AUTH),
    Command("listAcl -b {broker}", _AUTH),
    Command("copyAcl -f {broker} -t {broker} -s User:u", _AUTH),
    Command("deleteAcl -b {broker} -s User:u", _AUTH),
    Command("deleteUser -b {broker} -u u", _AUTH),
    Command("getAclConfig -b {broker}", _ACL),
    Command("clusterAclConfigVersion -b {broker}", _ACL),
    Command("updateAclConfig -b {broker} -a RocketMQ -s 12345678", _ACL),
    Command("deleteAclConfig -b {broker} -a RocketMQ", _ACL),
    Command("updateGlobalWhiteAddr -b {broker} -g 10.0.0.1", _ACL),
)
NOT_RUN = {
    "clusterRT": "sends for ever",
    "startMonitoring": "watches for ever",
}
"""Commands that do not end, and why."""


class Scene:
    """The topics, messages and clients that commands find, at one broker."""

    def __init__(self, jvm: ClientJvm, broker: Broker, folder: Path) -> None:
        self.jvm = jvm
        self.broker = broker
        self.folder = folder
        self.namesrv = broker.name_server.address
        folder.mkdir(parents=True, exist_ok=True)
        self._words = {
            "topic": TOPIC,
            "group": GROUP,
            "producers": PRODUCERS,
            "key": KEY,
            "broker": broker.address,
            "namesrv": self.namesrv,
            "folder": str(folder),
            "topics_file": str(folder / "topics.json"),
            "groups_file": str(folder / "groups.json"),
        }

    def build(self) -> None:
        """Makes two topics, and a producer and a consumer that keep running."""
        for topic in (TOPIC, "Sent"):
            self.run(f"updateTopic -t {topic} -b {{broker}} -r {_QUEUES} -w {_QUEUES}")
        self.run("updateSubGroup -g {group} -b {broker}")
        poll(lambda: "broker-a" in self.run("topicRoute -t {topic}"), "the topic is known")
        poll(lambda: "broker-a" in self.run("topicRoute -t Sent"), "the topic is known")
        producer = Producer(self.jvm, "producer", self.namesrv, group=PRODUCERS)
        sent = []
        for number in range(_MESSAGES):
            queue = {"topic": TOPIC, "broker": "broker-a", "queue_id": number % _QUEUES}
            each = message(TOPIC, f"body-{number}", tags=f"tag-{number % 2}", keys=f"key-{number}")
            sent += producer.send([each], queue=queue)
        self._words["offset_id"] = sent[3]["offset_msg_id"]
        self._words["unique_key"] = sent[3]["msg_id"]
        consumer = PushConsumer(self.jvm, "consumer", self.namesrv, group=GROUP, topic=TOPIC)
        consumer.wait_for(_MESSAGES)
        (self.folder / "topics.json").write_text(
            json.dumps([{"topicName": "Listed", "readQueueNums": 2, "writeQueueNums": 2}])
        )
        (self.folder / "groups.json").write_text(json.dumps([{"groupName": "listed"}]))
        poll(self._is_settled, "the consumer's offsets are known", 40)

    def _is_settled(self) -> bool:
        said = self.run("consumerProgress -g {group}")
        rows = len(re.findall(r"\bbroker-a\b", said))
        return rows == _QUEUES + 1 and re.search(r"Diff Total: 0\b", said) is not None

    def run(self, line: str) -> str:
        """Runs a command; returns its unchanged output, with what it writes into the folder."""
        before = set(self.folder.iterdir())
        words = [*line.format_map(self._words).split(), "-n", self.namesrv]
        said = self.jvm.call("mqadmin", line=words, seconds=_TIMEOUT_S)
        text = str(said["out"])
        error = str(said["err"]).splitlines()
        text += "".join(f"{each}\n" for each in error if not each.startswith(("\tat ", "\t...")))
        for path in sorted(set(self.folder.iterdir()) - before):
            if path.is_file():
                text += f"\n{_flat(path)}\n"
                path.unlink()
        return text if said["ended"] else text + "\n(does not end)"


def _flat(path: Path) -> str:
    """Returns a JSON file as lines of "path = value"."""
    lines: list[str] = []

    def add(place: str, value: Any) -> None:
        if isinstance(value, dict) and value:
            for key, each in value.items():
                add(f"{place}.{key}", each)
        elif isinstance(value, list) and value:
            for each in value:
                add(f"{place}[]", each)
        else:
            lines.append(f"{place} = {json.dumps(value)}")

    add(path.name, json.loads(path.read_text()))
    return "\n".join(lines)


_REPLACED = (
    (re.compile(r"\b[0-9A-F]{32,56}\b"), "ID"),
    (re.compile(r"[\w.:]+@[\d#@-]+\w*"), "CLIENT"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,:#]\d+)?"), "TIME"),
    (re.compile(r"\b1[6-9]\d{11}\b"), "TIME"),
    (re.compile(r"(?:127\.0\.0\.1|\b\d+\.\d+\.\d+\.\d+):\d+"), "ADDRESS"),
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+\b"), "ADDRESS"),
    (re.compile(r"-?\b\d+\.\d+(?:E-?\d+)?"), "N"),
    (re.compile(r"N(?: N)+"), "N"),
    (re.compile(r"\b\d+(?= ?ms\b)|(?<=counter = )\d+"), "N"),
    (re.compile(r"timeout, \d+\(ms\)"), "timeout"),
    (re.compile(r"https?://\S+"), "URL"),
    # The place in the original's code where an exception was thrown.
    (re.compile(r"(?<=DESC: )java\.[\w.]+: |, (?:org\.apache|java)\S*\([\w.]*:?\d*\)"), ""),
    (re.compile(r" BROKER: BROKER$", re.MULTILINE), ""),
)
_DIGITS = re.compile(r"\d+")


def comparable(command: Command, text: str, scene: Scene) -> list[str]:
    """Returns the lines of an output, without what differs each time."""
    broker, names = scene.broker, scene.broker.name_server
    for found, word in (
        (broker.address, "BROKER"),
        (names.address, "NAMESRV"),
        (str(scene.folder), "FOLDER"),
        (str(broker.folder), "HOME"),
        (str(names.folder), "HOME"),
    ):
        text = text.replace(found, word)
    text = re.sub(rf"\b(?:{broker.port}|{broker.port + 1}|{names.port})\b", "PORT", text)
    for pattern, word in _REPLACED:
        text = pattern.sub(word, text)
    lines = (" ".join(line.split()) for line in text.splitlines())
    if command.is_measured:
        lines = (_DIGITS.sub("N", line) for line in lines)
    return sorted(line for line in lines if line)


def run_all(scene: Scene, commands: Iterable[Command]) -> dict[str, list[str]]:
    """Runs commands; returns their outputs by line."""
    return {each.line: comparable(each, scene.run(each.line), scene) for each in commands}


def verdict(ours: list[str], original: list[str]) -> str:
    """Returns `same`, `more` if we have all lines of the original's and others, or `differs`."""
    if ours == original:
        return "same"
    rest = list(ours)
    for line in original:
        if line not in rest:
            return "differs"
        rest.remove(line)
    return "more"
