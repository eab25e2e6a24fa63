# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.remoting.process.java_options import VARIABLES, system_properties


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


def test_of_several_variables_the_last_counts() -> None:
    given = {variable: f"-Dkey={variable}" for variable in VARIABLES}
    assert system_properties(given) == {"key": (VARIABLES[-1], VARIABLES[-1])}
