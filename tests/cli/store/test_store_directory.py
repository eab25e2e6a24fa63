# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path

from tests.stored import SETTINGS, filled_store
from txrocketmq.cli.store.store_directory import config_from, known_topics


def test_the_settings_are_those_of_a_file_or_of_the_store(tmp_path: Path) -> None:
    store = tmp_path / "store"
    filled_store(store)
    config = config_from(store, None)
    assert config.mapped_file_size_commit_log == SETTINGS["mapped_file_size_commit_log"]
    file = tmp_path / "broker.conf"
    file.write_text("brokerName=b\nmaxIndexNum=4711\nstorePathRootDir=/elsewhere\n")
    config = config_from(store, str(file))
    assert (config.max_index_num, config.store_path_root_dir) == (4711, str(store))


def test_topics_are_those_of_their_file(tmp_path: Path) -> None:
    assert known_topics(tmp_path) is None
    path = tmp_path / "config" / "topics.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"topicConfigTable": {"T": {}}}))
    assert known_topics(tmp_path) == {"T"}
    path.write_text("[]")
    assert known_topics(tmp_path) is None
    path.write_text("{")
    assert known_topics(tmp_path) is None
