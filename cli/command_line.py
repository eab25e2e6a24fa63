# SPDX-License-Identifier: Apache-2.0
"""What the commands made with click have in common: options, types, and how they end.

No server imports click; neither does the command `txrocketmq` before one of these is called.
"""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from txrocketmq.client.base.config import ClientConfig

F = TypeVar("F", bound=Callable[..., Any])
CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
DEFAULT_NAMESRV: Final = "127.0.0.1:9876"
PATH: Final = click.Path(readable=False)
"""The type of options that are paths, which shells complete. Whether a file can be read is checked
when it is opened."""
_JAVA_TIME: Final = "%Y%m%d%H%M%S"


def group(name: str, summary: str) -> click.Group:
    """Returns a command that consists of further commands."""
    return click.Group(name, help=summary, context_settings=CONTEXT, no_args_is_help=True)


@dataclass(frozen=True, slots=True)
class Servers:
    """Where a command finds the servers, and how it connects to them."""

    namesrv: str
    tls: bool
    tls_trust_cert: str
    tls_check_name: bool
    tls_cert: str
    tls_key: str

    @property
    def encrypts(self) -> bool:
        """Whether connections are encrypted, as each of the options about TLS asks for."""
        files = self.tls_trust_cert or self.tls_cert or self.tls_key
        return self.tls or self.tls_check_name or bool(files)

    def config(self) -> ClientConfig:
        """Returns the settings of a client of these servers."""
        # Not at the top: a shell that asks for names should not wait for the client.
        from txrocketmq.client.base.config import ClientConfig

        return ClientConfig(
            namesrv_addr=self.namesrv,
            use_tls=self.encrypts,
            tls_trust_cert_path=self.tls_trust_cert,
            tls_check_name=self.tls_check_name,
            tls_cert_path=self.tls_cert,
            tls_key_path=self.tls_key,
        )


_SERVERS: Final = tuple(each.name for each in fields(Servers))


def servers_options(function: F) -> F:
    """Adds the options that all commands of the client have; they are its argument `servers`."""

    @wraps(function)
    def with_servers(**given: Any) -> Any:
        servers = Servers(**{name: given.pop(name) for name in _SERVERS})
        return function(servers=servers, **given)

    made: Any = with_servers
    for option in reversed(
        (
            click.option(
                "-n",
                "--namesrv",
                metavar="ADDR",
                default=_namesrv,
                help="Addresses of name servers as HOST:PORT, separated by semicolons (default:"
                f" $NAMESRV_ADDR, or {DEFAULT_NAMESRV}).",
            ),
            click.option("--tls", is_flag=True, help="Encrypt connections to the servers."),
            click.option(
                "--tls-trust-cert",
                type=PATH,
                metavar="FILE",
                default="",
                help="Encrypt them, and check servers by the certificates in this PEM file.",
            ),
            click.option(
                "--tls-check-name",
                is_flag=True,
                help="Encrypt them, and check that certificates are for the addresses of the"
                " servers.",
            ),
            click.option(
                "--tls-cert",
                type=PATH,
                metavar="FILE",
                default="",
                help="Encrypt them, and show servers the certificate in this PEM file.",
            ),
            click.option(
                "--tls-key",
                type=PATH,
                metavar="FILE",
                default="",
                help="The PEM file with the private key of that certificate.",
            ),
        )
    ):
        made = option(made)
    return made  # type: ignore[no-any-return]


def _namesrv() -> str:
    # Not at the top: see above.
    from txrocketmq.client.base.config import namesrv_addr_of_environment

    return namesrv_addr_of_environment() or DEFAULT_NAMESRV


def json_option_of(what: str) -> Callable[[F], F]:
    """Returns what adds the option `--json`, which prints each `what` as an object on a line."""
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        help=f"Print each {what} as a JSON object on a line of its own.",
    )


def positive(text: str) -> int:
    """The type of an option that is a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise click.BadParameter(f"{text!r} is not a whole number of at least 1")
    return int(text)


def above_zero(text: str) -> float:
    """The type of an option that is a number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise click.BadParameter(f"{text!r} is not a number above 0")
    return number


def pair(text: str) -> tuple[str, str]:
    """The type of an option that is NAME=VALUE; returns both parts."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE")
    return name, value


def moment(*words: str) -> Callable[[str], str | int]:
    """Returns the type of an option that is one of the words, or a time in ms since the epoch."""

    def convert(text: str) -> str | int:
        if text in words:
            return text
        try:
            return parse_time(text)
        except ValueError:
            known = "".join(f"{word}, " for word in words)
            raise click.BadParameter(
                f"{text!r} is neither {known}nor a time such as 2026-11-21T08:00:00"
                if words
                else f"{text!r} is not a time such as 2026-11-21T08:00:00"
            ) from None

    return convert


def parse_time(text: str) -> int:
    """Returns a time in ms since the epoch, written as such, as yyyyMMddHHmmss, or in ISO 8601.

    It is a local time unless it names its zone. Raises ValueError.
    """
    if re.fullmatch(r"\d{13}", text):
        return int(text)
    if re.fullmatch(r"\d{14}", text):
        moment = datetime.datetime.strptime(text, _JAVA_TIME)  # noqa: DTZ007 - local time
    else:
        moment = datetime.datetime.fromisoformat(text)
    try:
        return int(moment.timestamp() * 1000)
    except OverflowError as error:  # a time before the first year, in another zone
        raise ValueError(str(error)) from None


@contextmanager
def progress(label: str, count: int) -> Iterator[Callable[[int], None]]:
    """Shows a bar on standard error for work that may take long, if that is a terminal.

    It yields a function to be called with the number of steps that were done.
    """
    stream = sys.stderr
    if not stream.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=count, label=label, file=stream) as bar:

        def step(steps: int) -> None:
            bar.update(steps)

        yield step


def run(command: click.Command, prog: str, arguments: Sequence[str] | None) -> int:
    """Runs a command; returns the exit code."""
    try:
        code = command.main(args=arguments, prog_name=prog, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("nothing was done", err=True)
        return 1
    return code if isinstance(code, int) else 0
