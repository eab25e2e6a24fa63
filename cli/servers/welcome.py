# SPDX-License-Identifier: Apache-2.0
"""What `txrocketmq standalone` prints when it is ready: its addresses, and what to do next."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

_DEFAULT_NAMESRV = "127.0.0.1:9876"
_TEXT = """\

Ready.
  name server  {namesrv}
  broker       {broker}  ({name} of {cluster})
{grpc}  store        {store}

In another terminal{variables}, watch a topic and send to it:
  {command} tail TopicTest{option}
  {command} send TopicTest "Hello RocketMQ"{option}

From Java:
{producer}
  producer.setNamesrvAddr("{namesrv}"); producer.start();
  producer.send(new Message("TopicTest", "Hello RocketMQ".getBytes()));

With the original's tools{tools}:
  mqadmin clusterList -n {namesrv}

Ctrl-C stops it all.
"""
_OPEN: Final = {
    "variables": "",
    "producer": '  DefaultMQProducer producer = new DefaultMQProducer("group");',
    "tools": "",
}
_WITH_ACCOUNTS: Final = {
    "variables": ", with an account in ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY",
    "producer": """\
  RPCHook account = new AclClientRPCHook(new SessionCredentials("ACCESS KEY", "SECRET KEY"));
  DefaultMQProducer producer = new DefaultMQProducer("group", account);""",
    "tools": ", with accessKey and secretKey in their conf/tools.yml",
}


def welcome(
    namesrv: str,
    broker: str,
    cluster: str,
    name: str,
    store: str,
    grpc: str = "",
    *,
    needs_account: bool = False,
) -> str:
    """Returns the text that is printed; without an endpoint for gRPC, it does not mention one."""
    option = "" if _is_default(namesrv) else f" --namesrv {namesrv}"
    return _TEXT.format(
        namesrv=namesrv,
        broker=broker,
        cluster=cluster,
        name=name,
        store=store,
        grpc=f"  gRPC         {grpc}  (for clients of RocketMQ 5.x)\n" if grpc else "",
        option=option,
        command=own_command(),
        **(_WITH_ACCOUNTS if needs_account else _OPEN),
    )


def _is_default(namesrv: str) -> bool:
    """Returns whether commands find this name server if they are given none."""
    from txrocketmq.cli.context_file import ContextError, chosen_context

    try:
        return namesrv == _DEFAULT_NAMESRV and chosen_context(None, has_address=False) is None
    except ContextError:
        return False


def own_command() -> str:
    """Returns how a shell in this folder finds the command that runs now."""
    if shutil.which("txrocketmq") is not None:
        return "txrocketmq"
    beside = Path(sys.executable).with_name("txrocketmq")
    if not beside.exists():
        return f"{sys.executable} -m txrocketmq.cli"
    here = Path.cwd()
    return str(beside.relative_to(here) if beside.is_relative_to(here) else beside)
