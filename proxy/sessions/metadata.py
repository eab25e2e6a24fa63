# SPDX-License-Identifier: Apache-2.0
"""Who calls, as the headers of a call say it.

Java: InterceptorConstants, ContextInitPipeline.
"""

from __future__ import annotations

from typing import Any, Final

from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.schema.codes import Code

CLIENT_ID: Final = "x-mq-client-id"
LANGUAGE: Final = "x-mq-language"
VERSION: Final = "x-mq-client-version"


def client_id_of(call: Any) -> str:
    """Returns the id of the client that calls. Raises Refused if it gives none.

    With accounts, clients of one account are none of another, whatever id they give: what is asked
    of a client, or kept for it, is its account's.
    """
    client_id: str = call.headers.get(CLIENT_ID, "")
    if not client_id:
        raise Refused(
            Code.CLIENT_ID_REQUIRED, f"client id cannot be empty: set the header {CLIENT_ID}"
        )
    return f"{call.account}\0{client_id}" if call.account else client_id


def version_of(call: Any) -> str:
    """Returns the version of the client that calls; empty if it says none."""
    version: str = call.headers.get(VERSION, "")
    return version


def left_ms(call: Any) -> int | None:
    """Returns how long the client still waits, or None if it has set no deadline."""
    return None if call.deadline_ms is None else max(call.deadline_ms - call.steady_ms(), 0)
