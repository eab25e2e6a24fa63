# SPDX-License-Identifier: Apache-2.0
"""Logging of the official servers and clients to their standard output, in one form.

4.9.7 looks for files in ``$ROCKETMQ_HOME/conf`` or for ``logback.xml``, 5.4.0 for
``rmq.*.logback.xml`` in the class path; one folder serves them all.
"""

from pathlib import Path

_NAMES = (
    "logback.xml",
    "logback_namesrv.xml",
    "logback_broker.xml",
    "logback_tools.xml",
    "rmq.namesrv.logback.xml",
    "rmq.broker.logback.xml",
    "rmq.client.logback.xml",
    "rmq.tools.logback.xml",
    "rmq.proxy.logback.xml",
)

_SILENCE = '<configuration><root level="OFF"/></configuration>'

_CONFIGURATION = """<configuration>
  <appender name="console" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5level %logger{0} %msg%n</pattern></encoder>
  </appender>
  <logger name="RocketmqClient" level="WARN"/>
  <logger name="RocketmqRemoting" level="WARN"/>
  <logger name="RocketmqCommon" level="WARN"/>
  <logger name="RocketmqTraffic" level="WARN"/>
  <logger name="RocketmqWaterMark" level="WARN"/>
  <logger name="RocketmqNamesrvWaterMark" level="WARN"/>
  <logger name="RocketmqProxyWatermark" level="WARN"/>
  <logger name="io.netty" level="WARN"/>
  <logger name="org.apache.rocketmq" level="WARN"/>
  <root level="INFO"><appender-ref ref="console"/></root>
</configuration>
"""


def logging_configuration(folder: Path, *, is_silent: bool = False) -> Path:
    """Writes the logging files into a folder ``conf`` for the class path; returns that folder.

    `is_silent` is for programs whose output is compared.
    """
    conf = folder / "conf"
    conf.mkdir(exist_ok=True)
    for name in _NAMES:
        (conf / name).write_text(_SILENCE if is_silent else _CONFIGURATION)
    return conf
