# SPDX-License-Identifier: Apache-2.0
"""The official mqadmin on the servers under test: what it prints, compared with the original.

A representative part of the commands; `make mqadmin-table` has them all.
"""

from pathlib import Path

import pytest

from compat_tests.engine import Engine
from compat_tests.jars import RELEASES
from compat_tests.mqadmin import COMMANDS, NOT_RUN, verdict
from compat_tests.mqadmin_table import PAGE, golden, outputs, verdicts
from compat_tests.peers import Origin, Ours

EVERYDAY = [each for each in COMMANDS if each.is_everyday]


@pytest.mark.parametrize("release", RELEASES)
def test_commands_print_what_the_table_says(
    release: str, origin: Origin, engine: Engine, test_folder: Path
) -> None:
    if not isinstance(origin, Ours) and origin.behaves_as != release:
        pytest.skip(f"{origin.name} is measured by its own release")
    folder = test_folder / f"mqadmin-{release}"
    found = outputs(origin, release, engine, folder, EVERYDAY)
    original = golden(release)
    expected = verdicts(PAGE.read_text()) if isinstance(origin, Ours) else {}
    for line, said in found.items():
        assert verdict(said, original[line]) == expected.get((release, line), "same"), (
            f"mqadmin {line} of {release} prints {said}, the original {original[line]}"
        )


def test_what_differs_says_why() -> None:
    commands = {each.line: each for each in COMMANDS}
    for (release, line), said in verdicts(PAGE.read_text()).items():
        if line in NOT_RUN:
            continue
        assert said in ("same", "more", "differs", "-")
        assert said != "differs" or commands[line].reason(release), f"{line} on {release}"
