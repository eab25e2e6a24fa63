# SPDX-License-Identifier: Apache-2.0
"""The settings of controllers of the original, which reach agreement in one of two ways.

With DLedger, controllers and brokers speak to the same port. With JRaft, controllers have a port
of their own among themselves.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from compat_tests import probe

DLEDGER, JRAFT = "DLedger", "jRaft"
KINDS = (DLEDGER, JRAFT)


def controller_settings(
    kind: str, ports: Sequence[int], folders: Sequence[Path]
) -> list[Mapping[str, str]]:
    """Returns the settings of each of the controllers that brokers reach at these ports."""
    stores = [{"controllerStorePath": str(each)} for each in folders]
    if kind == DLEDGER:
        peers = ";".join(f"n{at}-127.0.0.1:{port}" for at, port in enumerate(ports))
        group = {"controllerDLegerGroup": "group", "controllerDLegerPeers": peers}
        return [
            {**group, "controllerDLegerSelfId": f"n{at}", **own} for at, own in enumerate(stores)
        ]
    among = [f"127.0.0.1:{probe.free_ports([0])}" for _ in ports]
    group = {
        "controllerType": kind,
        "jRaftGroupId": "group",
        "jRaftInitConf": ",".join(among),
        "jRaftControllerRPCAddr": ",".join(f"127.0.0.1:{port}" for port in ports),
    }
    return [
        {**group, "jRaftServerId": each, **own} for each, own in zip(among, stores, strict=True)
    ]
