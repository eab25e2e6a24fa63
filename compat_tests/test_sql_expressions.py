# SPDX-License-Identifier: Apache-2.0
"""Random SQL92 expressions: our evaluator compared with the original's, of both releases."""

import os
import random
from pathlib import Path

import pytest

from compat_tests.engine import Engine
from compat_tests.filter_cases import Case, cases
from compat_tests.filter_outcomes import Outcome, outcomes
from compat_tests.jars import RELEASES
from txrocketmq.broker.filter.grammar import parse
from txrocketmq.broker.filter.operators import EvaluationError, ExpressionError, evaluate

COUNT = int(os.environ.get("TXROCKETMQ_EXPRESSIONS", "20000"))
OF_5X = ("CONTAINS", "STARTSWITH", "ENDSWITH")


def _ours(case: Case) -> Outcome:
    try:
        return evaluate(parse(case.expression)[0], case.properties)
    except EvaluationError:
        return "throws"
    except ExpressionError:
        return "refused"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("release", RELEASES)
def test_random_expressions(release: str, engine: Engine, test_folder: Path) -> None:
    seed = random.randrange(1 << 32)
    asked = cases(seed, COUNT)
    if release == "4.9.7":  # to which these words are names
        asked = [
            each for each in asked if not any(word in each.expression.upper() for word in OF_5X)
        ]
    found = outcomes(release, engine, test_folder, asked)
    wrong = [
        (case, theirs, ours)
        for case, theirs in zip(asked, found, strict=True)
        if (ours := _ours(case)) is not theirs and ours != theirs
    ]
    assert not wrong, (seed, len(wrong), wrong[:3])
    seen = {each: found.count(each) for each in (True, False, None, "throws", "refused")}
    assert min(seen.values()) > COUNT // 50, (seed, seen)
