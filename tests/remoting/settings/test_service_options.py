# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import argparse

import pytest

import txrocketmq
from txrocketmq.remoting.settings.service_options import (
    ServiceOptions,
    add_service_options,
    service_options,
)


def parsed(*arguments: str) -> ServiceOptions:
    parser = argparse.ArgumentParser()
    add_service_options(parser)
    return service_options(parser.parse_args(arguments))


def test_flags() -> None:
    assert parsed() == ServiceOptions()
    flags = "--log-level debug --log-file l --log-format json --ready-file r"
    assert parsed(*flags.split()) == ServiceOptions("debug", "l", "json", "r")


@pytest.mark.parametrize("wrong", ["--log-level=all", "--log-format=xml"])
def test_wrong_usage(wrong: str) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed(wrong)
    assert ended.value.code == 2


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed("--version")
    assert ended.value.code == 0
    assert capsys.readouterr().out.endswith(f" {txrocketmq.__version__}\n")
    assert txrocketmq.__version__[0].isdigit()
