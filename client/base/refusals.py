# SPDX-License-Identifier: Apache-2.0
"""What a server with accounts says when it refuses a request, and what can be done about it.

Servers with ACL 2 answer NO_PERMISSION (16), those with ACL 1 SYSTEM_ERROR (1) and the name of
their exception. Java: AuthenticationException, AuthorizationException; AclException.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from txrocketmq.remoting.codes import ResponseCode

ACL_1: Final = "org.apache.rocketmq.acl.common.AclException: "
_STACK: Final = re.compile(r", [\w.$]+\([\w.$]*:?-?\d*\)$")
"""The place in the original's code, at the end of a remark of 4.9."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request was refused; `account`, `resource` and `address` are empty if not told."""

    why: str
    """The server's words."""
    advice: str
    account: str = ""
    resource: str = ""
    """Such as "Topic:Orders"."""
    address: str = ""
    """The address from which the request came."""


_SIGN: Final = (
    "the server asks for an account: give access_key and secret_key, or set $ROCKETMQ_ACCESS_KEY"
    " and $ROCKETMQ_SECRET_KEY"
)
_WRONG_KEY: Final = (
    "the secret key of {who} is not the one that the server has, or the request was"
    " changed on its way"
)
_UNKNOWN: Final = "this server has no account {account}: check the access key, or create it there"
_NO_POLICY: Final = (
    "account {account} has no policy for this: an administrator adds one with 'txrocketmq policies"
    " add {account} {resource} --allow ACTION'"
)
_DENIED: Final = (
    "a policy of account {account} denies this: 'txrocketmq policies test {account} ACTION"
    " {resource} --from {address}' shows which one"
)
_DISABLED: Final = (
    "an administrator enables it with 'txrocketmq accounts change {account} --enable'"
)
_ADMIN: Final = "only accounts with admin: true in plain_acl.yml may do this"
_NO_PERM: Final = (
    "the account has no permission for it: an administrator adds it to its topicPerms or groupPerms"
    " in plain_acl.yml"
)
_OF_ACCOUNTS: Final = {
    "The user is existed": "change that account, or choose another name",
    "The user is not exist": "check its spelling, or create the account first",
    r"The subject( of .*)? is not exist\.": "check its spelling, or create the account first",
    r"The acl is not exist\.": "the account has no such policy there",
    r"The resource is null\.": (
        "a resource is Topic:NAME, Group:NAME or Cluster:NAME, with or without * at the end, or *"
    ),
    r"The source ip is (empty|invalid)\.": (
        "an address is one such as 10.1.2.3, or a network such as 10.0.0.0/8"
    ),
    "password can not be blank": "give a password",
    "The super user can only be (create|update) by super user": (
        "sign with an account of the type Super"
    ),
}
"""What to do about the remarks of ACL 2 to those who change accounts."""
_WHO: Final = "(?P<account>.*?)"
_ACCESS: Final = (
    rf"User:{_WHO} has no permission to access (?P<resource>.*?) from (?P<address>[^ ]*), "
)
_ADVICE: Final = {
    rf"{_ACCESS}no matched policies\.": _NO_POLICY,
    rf"{_ACCESS}the decision is deny\.": _DENIED,
    r"username cannot be null\.": _SIGN,
    rf"User:{_WHO} (?:is )?not found\.": _UNKNOWN,
    rf"User:{_WHO} is disabled\.": _DISABLED,
    r"check signature failed\.": _WRONG_KEY,
    **_OF_ACCOUNTS,
}
"""What to do about the remarks of ACL 2."""
_ADVICE_1: Final = {
    "No accessKey is configured": _SIGN,
    f"No acl config for {_WHO}": _UNKNOWN,
    f"No PlainAccessResource for accessKey={_WHO}": _UNKNOWN,
    f"Check signature failed for accessKey={_WHO}": _WRONG_KEY,
    rf"Need admin permission for request code=\d+, but accessKey={_WHO} is not": _ADMIN,
    r"No default permission for (?P<resource>(?:topic|group):.*)": _NO_PERM,
}
"""What to do about the texts of ACL 1."""


def refusal_of(code: int, remark: str | None) -> Refusal | None:
    """Returns what the server says about the account; None if the answer is about something else.

    `account` is empty if the server does not repeat it.
    """
    if not remark:
        return None
    if code == ResponseCode.NO_PERMISSION:
        why, known = remark, _ADVICE
    elif code == ResponseCode.SYSTEM_ERROR and remark.startswith("The super user"):
        why, known = remark, _OF_ACCOUNTS  # the original answers so when one is created
    elif code == ResponseCode.SYSTEM_ERROR and remark.startswith(ACL_1):
        why, known = _STACK.sub("", remark.removeprefix(ACL_1)), _ADVICE_1
    else:
        return None
    for pattern, advice in known.items():
        found = re.fullmatch(pattern, why)
        if found is not None:
            told = found.groupdict()
            who = f"account {told['account']}" if "account" in told else "the account"
            return Refusal(why, advice.format(who=who, **told), **told)
    return None
