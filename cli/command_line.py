# SPDX-License-Identifier: Apache-2.0
"""What the commands made with click have in common: options, types, and how they end.

No server imports click; neither does the command `txrocketmq` before one of these is called.
"""

from __future__ import annotations

import dataclasses
import datetime
import difflib
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from txrocketmq.cli.context_file import Context, ContextError, ContextFile, chosen_context
from txrocketmq.cli.habits.foreign_commands import FOREIGN_COMMANDS
from txrocketmq.cli.habits.foreign_options import option_for

if TYPE_CHECKING:
    from txrocketmq.client.base.config import ClientConfig

F = TypeVar("F", bound=Callable[..., Any])
CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
DEFAULT_NAMESRV: Final = "127.0.0.1:9876"
SERVERS: Final = "Servers"
"""The heading of the options that say where servers are, and how to connect to them."""
PATH: Final = click.Path(readable=False)
"""The type of options that are paths, which shells complete. Whether a file can be read is checked
when it is opened."""
MAX_SECRET_BYTES: Final = 4096
"""How long a line with a secret may be."""
FIRST: Final = "first"
LAST: Final = "last"
_KAFKA_WORDS: Final = {
    "earliest": FIRST, "beginning": FIRST, "start": FIRST, "latest": LAST, "end": LAST,
}  # fmt: skip
"""What kcat, rpk and Kafka's own tools call the two ends of a queue."""
_SENTENCE: Final = 1_000
"""More characters than any sentence has."""
_JAVA_TIME: Final = "%Y%m%d%H%M%S"


class Command(click.Command):
    """A command whose help has a section of its own for the options that say where servers are."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the arguments; answers an option of another program by what it is called here."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            known = {name for each in self.params for name in (*each.opts, *each.secondary_opts)}
            answer = option_for(error.option_name, known)
            if not answer:
                raise
            text = f"No such option '{error.option_name}': {answer}."
            raise click.UsageError(text, ctx) from None

    def get_short_help_str(self, limit: int = _SENTENCE) -> str:
        """Returns the first sentence of the help, in whole: lists of commands fold it."""
        return super().get_short_help_str(max(limit, _SENTENCE))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options, those of `servers_options` last."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": [], SERVERS: []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                name = SERVERS if isinstance(parameter, _ServersOption) else "Options"
                sections[name].append(record)
        for name, records in sections.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)


class _ServersOption(click.Option):
    """One of the options that all commands of the client have."""


class _Group(click.Group):
    command_class = Command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the arguments; says where an option belongs that one of its commands has."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name
            its = [option for each in self.commands.values() for option in each.params]
            if not any(name in each.opts for each in its):
                raise
            text = f"{name} follows the command, as in '{ctx.command_path} COMMAND {name} ...'"
            raise click.UsageError(text, ctx) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command; for an unknown one, names the one that is meant, or all."""
        name, known = args[0], self.commands
        if name in known or name.startswith("-"):
            return super().resolve_command(ctx, args)
        near = [each for each in known if name in FOREIGN_COMMANDS.get(each, ())]
        near = near or difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"its commands are {', '.join(known)}"
        raise click.UsageError(f"{ctx.command_path} has no command {name!r}; {hint}", ctx)


def group(name: str, summary: str) -> click.Group:
    """Returns a command that consists of further commands."""
    return _Group(name, help=summary, context_settings=CONTEXT, no_args_is_help=True)


def one_command(name: str, *, epilog: str | None = None) -> Callable[[Callable[..., Any]], Command]:
    """Returns what makes a function a command without further commands."""
    return click.command(name, cls=Command, context_settings=CONTEXT, epilog=epilog)


@dataclass(frozen=True, slots=True)
class Servers:
    """Where a command finds the servers, and how it connects to them."""

    namesrv: str | None = None
    context: str | None = None
    tls: bool = False
    tls_trust_cert: str = ""
    tls_check_name: bool = False
    tls_cert: str = ""
    tls_key: str = ""
    access_key: str = ""
    secret_key_file: str = ""

    def config(self) -> ClientConfig:
        """Returns the settings of a client of these servers.

        Options come before the values of a context. Raises ClickException for a context that cannot
        be used.
        """
        # Not at the top: a shell that asks for names should not wait for the client.
        from txrocketmq.client.base.config import ClientConfig, namesrv_addr_of_environment

        try:
            context = chosen_context(self.context, has_address=bool(self.namesrv))
        except ContextError as error:
            raise click.ClickException(str(error)) from None
        if context is None:
            namesrv = self.namesrv or namesrv_addr_of_environment() or DEFAULT_NAMESRV
            context = Context(namesrv=namesrv)
        elif self.namesrv:
            context = dataclasses.replace(context, namesrv=self.namesrv)
        files = (
            self.tls_trust_cert or context.tls_trust_cert,
            self.tls_cert or context.tls_cert,
            self.tls_key or context.tls_key,
        )
        checks_name = self.tls_check_name or context.tls_check_name
        config = ClientConfig(
            namesrv_addr=context.namesrv,
            use_tls=self.tls or context.tls or checks_name or any(files),
            tls_trust_cert_path=files[0],
            tls_check_name=checks_name,
            tls_cert_path=files[1],
            tls_key_path=files[2],
        )
        access_key, secret_key = self._keys() or (context.access_key, context.secret_key)
        if not access_key:
            return config  # with the keys of the environment, if it has any
        return dataclasses.replace(config, access_key=access_key, secret_key=secret_key)

    def _keys(self) -> tuple[str, str] | None:
        """Returns the keys that the options give. Raises ClickException."""
        if not self.access_key:
            if self.secret_key_file:
                raise click.UsageError("--secret-key-file belongs to --access-key")
            return None
        if self.secret_key_file:
            return self.access_key, first_line(self.secret_key_file)
        secret_key = os.environ.get("ROCKETMQ_SECRET_KEY")
        if not secret_key:
            raise click.UsageError(
                "the secret key of --access-key is missing: give --secret-key-file, or set"
                " $ROCKETMQ_SECRET_KEY"
            )
        return self.access_key, secret_key


_SERVERS: Final = tuple(each.name for each in fields(Servers))


def servers_options(function: F) -> F:
    """Adds the options that all commands of the client have; they are its argument `servers`."""

    @wraps(function)
    def with_servers(**given: Any) -> Any:
        servers = Servers(**{name: given.pop(name) for name in _SERVERS})
        return function(servers=servers, **given)

    made: Any = with_servers
    for option in reversed(_SERVERS_OPTIONS):
        made = option(made)
    return made  # type: ignore[no-any-return]


def servers_of(ctx: click.Context) -> Servers:
    """Returns the servers that an unfinished line of a command names."""
    given = {name: ctx.params.get(name) for name in _SERVERS}
    return Servers(**{name: value for name, value in given.items() if value is not None})


def _option(*names: str, **settings: Any) -> Callable[[F], F]:
    return click.option(*names, cls=_ServersOption, **settings)


def context_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Returns the names of contexts that may complete what was typed."""
    try:
        known = ContextFile.read().contexts
    except ContextError:
        return []
    return sorted(name for name in known if name.startswith(incomplete))


def _no_number(ctx: click.Context, _: click.Parameter, value: str | None) -> str | None:
    """Refuses the number of messages that rpk takes as -n."""
    if value is not None and value.isdigit():
        counts = "--count" in {name for each in ctx.command.params for name in each.opts}
        hint = "; the number of messages is --count" if counts else ""
        raise click.BadParameter(f"{value} is no address such as {DEFAULT_NAMESRV}{hint}")
    return value


_SERVERS_OPTIONS: Final = (
    _option(
        "-n",
        "--namesrv",
        metavar="ADDR",
        callback=_no_number,
        help="Addresses of name servers as HOST:PORT, separated by semicolons (default:"
        f" $NAMESRV_ADDR, or {DEFAULT_NAMESRV}).",
    ),
    _option(
        "--context",
        metavar="NAME",
        shell_complete=context_names,
        help="A cluster by the name that 'txrocketmq contexts add' gave it (default:"
        " $TXROCKETMQ_CONTEXT, or the current one unless $NAMESRV_ADDR is set).",
    ),
    _option("--tls", is_flag=True, help="Encrypt connections to the servers."),
    _option(
        "--tls-trust-cert",
        type=PATH,
        metavar="FILE",
        default="",
        help="Certificates (PEM) by which servers are checked; implies --tls.",
    ),
    _option(
        "--tls-check-name",
        is_flag=True,
        help="Check that certificates are for the addresses of the servers; implies --tls.",
    ),
    _option(
        "--tls-cert",
        type=PATH,
        metavar="FILE",
        default="",
        help="Client certificate (PEM) to present to servers; implies --tls.",
    ),
    _option(
        "--tls-key",
        type=PATH,
        metavar="FILE",
        default="",
        help="Private key (PEM) of the client certificate.",
    ),
    _option(
        "--access-key",
        metavar="KEY",
        default="",
        help="The account that signs requests (default: that of the context, or"
        " $ROCKETMQ_ACCESS_KEY).",
    ),
    _option(
        "--secret-key-file",
        type=PATH,
        metavar="FILE",
        default="",
        help="A file whose first line is the secret key of --access-key (default:"
        " $ROCKETMQ_SECRET_KEY).",
    ),
)


def first_line(path: str) -> str:
    """Returns the first line of a file with a secret; "-" is standard input.

    Raises ClickException if it cannot be read or is empty.
    """
    try:
        if path == "-":
            data = sys.stdin.buffer.readline(MAX_SECRET_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.readline(MAX_SECRET_BYTES + 1)
        line = data.decode("utf-8").rstrip("\r\n")
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.ClickException(f"the first line of {path} is not text in UTF-8") from None
    if len(data) > MAX_SECRET_BYTES:
        raise click.ClickException(
            f"the first line of {path} is longer than {MAX_SECRET_BYTES} bytes"
        )
    if not line:
        raise click.ClickException(f"the first line of {path} is empty; a secret is expected there")
    return line


def json_option_of(what: str) -> Callable[[F], F]:
    """Returns what adds the option `--json`, which prints each `what` as an object on a line."""
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        help=f"Print each {what} as a JSON object on a line of its own.",
    )


def whole(least: int) -> Callable[[str], int]:
    """Returns the type of an option that is a whole number of at least this."""

    def convert(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise click.BadParameter(f"{text!r} is not a whole number of at least {least}")
        return int(text)

    return convert


positive: Final = whole(1)


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
    """Returns the type of an option that is one of the words, or a time in ms since the epoch.

    The words of Kafka's tools for the first and the last message mean the same.
    """

    def convert(text: str) -> str | int:
        word = _KAFKA_WORDS.get(text, text)
        if word in words:
            return word
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
