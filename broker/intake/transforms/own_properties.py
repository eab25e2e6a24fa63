# SPDX-License-Identifier: Apache-2.0
"""MSG_REGION, TRACE_ON and CLUSTER: properties that the broker adds to each sent message.

What a client has written under these names is removed. The messages of a batch have none of them,
as in 5.4 (4.9 gives them CLUSTER). Java: SendMessageProcessor.preSend, sendMessage.
"""

from __future__ import annotations

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transform import ActsOn
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.remoting.message import properties as names


class OwnProperties:
    """Removes what a client has written under the broker's names."""

    acts_on = ActsOn(
        properties=frozenset({names.MSG_REGION, names.TRACE_ON, names.CLUSTER}), ways=Way.SEND
    )

    def apply(self, message: InnerMessage, now_ms: int) -> None:
        """Removes these properties from the message."""
        for name in self.acts_on.properties:
            message.properties.pop(name, None)


def own_properties(config: BrokerConfig) -> dict[str, str]:
    """The properties that are written into each message, after its own."""
    return {
        names.MSG_REGION: config.region_id,
        names.TRACE_ON: "true" if config.trace_on else "false",
        names.CLUSTER: config.broker_cluster_name,
    }
