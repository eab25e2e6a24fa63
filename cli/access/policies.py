# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq policies`: what accounts may do (ACL 2), and what that means for a request."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

import click

from txrocketmq.cli.access.accounts import account_argument, ask_broker, ask_place, places
from txrocketmq.cli.access.questions import Question
from txrocketmq.cli.admin.admin_command import (
    administrate,
    confirm,
    json_option,
    place_options,
    show,
    yes_option,
)
from txrocketmq.cli.command_line import Servers, group, run, servers_options
from txrocketmq.client.admin.accounts import ACTIONS, Policy
from txrocketmq.client.admin.admin import Admin

PROG: Final = "txrocketmq policies"
command = group("policies", "List, add, change, remove and test what accounts may do.")
_RESOURCES: Final = (
    "A resource is Topic:NAME, Group:NAME or Cluster:NAME, where NAME may end with * for all names"
    " that begin like this, or * for everything."
)
_ACTIONS: Final = f"some of {', '.join(ACTIONS)}, separated by commas"
_resource: Final = click.argument("resource", metavar="RESOURCE")
_default: Final = click.option(
    "--default",
    "is_default",
    is_flag=True,
    help="A default policy, which applies only where no other policy of the account matches.",
)
_allow: Final = click.option(
    "--allow", metavar="ACTIONS", help=f"The actions that are allowed: {_ACTIONS}."
)
_deny: Final = click.option("--deny", metavar="ACTIONS", help="The actions that are denied.")
_addresses: Final = click.option(
    "--from",
    "addresses",
    metavar="ADDRESS",
    multiple=True,
    help="Only for clients at this address or in this network (10.0.0.0/8); can be repeated.",
)


@command.command("list")
@click.argument("account", metavar="[ACCOUNT]", required=False)
@click.option(
    "--resource", metavar="PART", default="", help="Only for resources that contain this text."
)
@ask_place
@ask_broker
@servers_options
@json_option
def list_policies(
    account: str | None, resource: str, servers: Servers, as_json: bool, **place: Any
) -> None:
    """List the policies of ACCOUNT, or of all accounts, and which brokers have them."""

    async def work(admin: Admin) -> None:
        found = await admin.policies(account, resource=resource, **place)
        rows = [{**_values(policy), "brokers": where} for policy, where in places(found)]
        columns = {
            "account": "ACCOUNT", "resource": "RESOURCE", "decision": "DECISION",
            "actions": "ACTIONS", "from": "FROM", "kind": "KIND", "brokers": "BROKERS",
        }  # fmt: skip
        if not as_json:
            texts = ("actions", "from")
            rows = [{**row, **{name: ", ".join(row[name]) for name in texts}} for row in rows]
        none = f"account {account} has no policies" if account else "there are no policies"
        show(rows, columns, as_json=as_json, none=none, folds=("brokers", "from", "actions"))

    administrate(servers, work)


@command.command("add", epilog=_RESOURCES)
@account_argument
@_resource
@_allow
@_deny
@_addresses
@_default
@place_options
@servers_options
def add(
    name: str,
    resource: str,
    allow: str | None,
    deny: str | None,
    addresses: Sequence[str],
    is_default: bool,
    servers: Servers,
    **place: Any,
) -> None:
    """Add a policy: what ACCOUNT may do, or may not do, with RESOURCE."""
    actions, allows = _decision(allow, deny)
    if not actions:
        raise click.UsageError(f"say what it is about: --allow or --deny, with {_ACTIONS}")
    policy = Policy(
        account=name,
        resource=resource,
        actions=actions,
        allows=allows,
        addresses=tuple(addresses),
        is_default=is_default,
    )

    async def work(admin: Admin) -> None:
        found = await admin.policies(name, **place)
        if any(_is_for(each, resource, is_default) for its in found.values() for each in its):
            raise ValueError(
                f"account {name} has a policy for {resource}: change it with 'txrocketmq policies"
                " change'"
            )
        await admin.set_policies([policy], **place)
        print(f"added a policy of account {name} for {resource}")

    administrate(servers, work)


@command.command("change", epilog=_RESOURCES)
@account_argument
@_resource
@_allow
@_deny
@_addresses
@click.option("--from-anywhere", is_flag=True, help="For clients at all addresses again.")
@_default
@place_options
@servers_options
def change(
    name: str,
    resource: str,
    allow: str | None,
    deny: str | None,
    addresses: Sequence[str],
    from_anywhere: bool,
    is_default: bool,
    servers: Servers,
    **place: Any,
) -> None:
    """Change the policy of ACCOUNT for RESOURCE.

    Settings without an option stay as they are.
    """
    actions, allows = _decision(allow, deny)
    if addresses and from_anywhere:
        raise click.UsageError("give --from or --from-anywhere, not both")
    changes: dict[str, Any] = {}
    if actions:
        changes |= {"actions": actions, "allows": allows}
    if addresses or from_anywhere:
        changes["addresses"] = tuple(addresses)
    if not changes:
        raise click.UsageError(
            "nothing is to be changed: give --allow, --deny, --from or --from-anywhere"
        )

    async def work(admin: Admin) -> None:
        found = await admin.policies(name, **place)
        has_any = False
        for broker, its in found.items():
            for each in its:
                if _is_for(each, resource, is_default):
                    has_any = True
                    changed = dataclasses.replace(each, **changes)
                    await admin.set_policies([changed], broker=broker.address)
        if not has_any:
            raise ValueError(
                f"account {name} has no policy for {resource}: add one with 'txrocketmq policies"
                " add'"
            )
        print(f"changed the policy of account {name} for {resource}")

    administrate(servers, work)


@command.command("remove", epilog=_RESOURCES)
@account_argument
@click.argument("resource", metavar="[RESOURCE]", required=False)
@_default
@yes_option
@place_options
@servers_options
def remove(
    name: str,
    resource: str | None,
    is_default: bool,
    yes: bool,
    servers: Servers,
    **place: Any,
) -> None:
    """Remove the policy of ACCOUNT for RESOURCE, or all policies of ACCOUNT."""
    if is_default and resource is None:
        raise click.UsageError("name the resource of the default policy")
    what = f"the policy of account {name} for {resource}"
    confirm(f"Remove {what if resource else f'all policies of account {name}'}?", yes=yes)

    async def work(admin: Admin) -> None:
        await admin.delete_policies(name, resource, is_default=is_default, **place)
        print(f"removed {what if resource else f'all policies of account {name}'}")

    administrate(servers, work)


@command.command(
    "test",
    epilog="The exit code is 0 if all brokers allow it, and 1 if not.",
)
@account_argument
@click.argument("action", metavar="ACTION", type=click.Choice(ACTIONS[:-1], case_sensitive=False))
@_resource
@click.option(
    "--from",
    "address",
    metavar="ADDRESS",
    default="127.0.0.1",
    help="The IP address of the client (default: 127.0.0.1).",
)
@ask_place
@ask_broker
@servers_options
@json_option
def test(
    name: str,
    action: str,
    resource: str,
    address: str,
    servers: Servers,
    as_json: bool,
    **place: Any,
) -> None:
    """Say whether ACCOUNT may do ACTION with RESOURCE, and why."""
    question = Question.of(name, action, resource, address)
    refused: list[str] = []

    async def work(admin: Admin) -> None:
        accounts = await admin.accounts(name, **place)
        policies = await admin.policies(name, **place)
        rows = []
        for broker, its in accounts.items():
            account = next((each for each in its if each.name == name), None)
            verdict = question.answer(account, policies.get(broker, ()))
            if not verdict.is_allowed:
                refused.append(broker.name)
            rows.append({"broker": broker.name, "allowed": verdict.is_allowed, "why": verdict.why})
        columns = {"broker": "BROKER", "allowed": "ALLOWED", "why": "WHY"}
        show(rows, columns, as_json=as_json, none="no broker was asked", folds=("why",))

    administrate(servers, work)
    if refused:
        click.get_current_context().exit(1)


def _decision(allow: str | None, deny: str | None) -> tuple[Sequence[str], bool]:
    """Returns the actions, if there are any, and whether they are allowed. Raises UsageError."""
    if allow is not None and deny is not None:
        raise click.UsageError("a policy allows or denies: give --allow or --deny, not both")
    text = allow if deny is None else deny
    actions = tuple(each.strip() for each in (text or "").split(",") if each.strip())
    known = {each.lower() for each in ACTIONS}
    for each in actions:
        if each.lower() not in known:
            raise click.UsageError(f"{each!r} is not an action; there are {', '.join(ACTIONS)}")
    if text is not None and not actions:
        raise click.UsageError(f"no action is given; there are {', '.join(ACTIONS)}")
    return actions, deny is None


def _is_for(policy: Policy, resource: str, is_default: bool) -> bool:
    return policy.resource == resource and policy.is_default == is_default


def _values(policy: Policy) -> dict[str, Any]:
    return {
        "account": policy.account,
        "resource": policy.resource,
        "decision": "allow" if policy.allows else "deny",
        "actions": list(policy.actions),
        "from": list(policy.addresses),
        "kind": "default" if policy.is_default else "custom",
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    return run(command, PROG, arguments)
