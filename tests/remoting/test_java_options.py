# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.broker.original_keys import BROKER_UNSERVED
from txrocketmq.namesrv.original_keys import NAMESRV_UNSERVED
from txrocketmq.remoting.config_file import ConfigError
from txrocketmq.remoting.java_options import VARIABLES, refuse_unserved, system_properties


def test_properties_of_all_variables_are_found() -> None:
    assert system_properties(
        {
            "JAVA_OPT": "-server -Xmx1g -Dtls.server.mode=permissive '-Dkey=two words' -Dbare",
            "JAVA_TOOL_OPTIONS": "-Dtls.server.mode=enforcing",
            "OTHER": "-Dother=1",
            "_JAVA_OPTIONS": "-Dquoted='no end",
        }
    ) == {
        "tls.server.mode": ("enforcing", "JAVA_TOOL_OPTIONS"),
        "key": ("two words", "JAVA_OPT"),
        "bare": ("", "JAVA_OPT"),
        "quoted": ("'no", "_JAVA_OPTIONS"),
    }


@pytest.mark.parametrize("unserved", [BROKER_UNSERVED, NAMESRV_UNSERVED])
@pytest.mark.parametrize("variable", VARIABLES)
def test_tls_that_is_demanded_is_refused(variable: str, unserved: tuple[object, ...]) -> None:
    with pytest.raises(ConfigError, match=rf"^\${variable}: -Dtls.server.mode=enforcing: TLS is "):
        refuse_unserved({variable: "-Xms1g -Dtls.server.mode=enforcing"}, unserved)  # type: ignore[arg-type]


def test_anything_else_is_not() -> None:
    for text in ("", "-Xms1g", "-Dtls.server.mode=disabled", "-Dunknown=1", "-Dtls.enable=false"):
        refuse_unserved({"JAVA_OPT_EXT": text}, BROKER_UNSERVED)
