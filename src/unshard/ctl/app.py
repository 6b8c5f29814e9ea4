"""`unshard ctl`: dmctl's verbs with its flags, one at a time or at a prompt; the one command table."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from unshard.config.listener import LinkSecurity
from unshard.config.quantities import seconds_of
from unshard.ctl.session import (
    DEFAULT_SECONDS,
    CtlSession,
    addresses,
    guarded,
    masters_of_environment,
    token_of_environment,
)
from unshard.ctl.verbs import binlog, binlog_schema, config, member, secret, shard_ddl, source, task, validation
from unshard.ctl.words import GlobalFlags

ctl = typer.Typer(
    cls=GlobalFlags,
    rich_markup_mode=None,
    help="The commands of dmctl, with its flags and its JSON. Without a command: a prompt, or lines from a pipe.\n\n"
    "Exit code of each command 0: done, 1: refused or failed, the answer says why, 2: wrong use.",
)
for part in (task, source, member, shard_ddl, binlog, binlog_schema, validation, config, secret):
    part.register(ctl)


@ctl.callback(invoke_without_command=True)
def flags(
    context: typer.Context,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", "-s", metavar="SOURCE", help="A source's id, or its file; also several, with commas."),
    ] = None,
    master_addr: Annotated[
        list[str] | None,
        typer.Option(
            "--master-addr",
            metavar="HOST:PORT",
            help="A master, repeatable; default: $UNSHARD_MASTER_ADDR or $DM_MASTER_ADDR.",
        ),
    ] = None,
    config_file: Annotated[
        str,
        typer.Option("--config", metavar="FILE", help="YAML or dmctl's TOML with these settings; flags override it."),
    ] = "",
    rpc_timeout: Annotated[
        str, typer.Option("--rpc-timeout", metavar="TIME", help="How long to wait for an answer. [default: 10m]")
    ] = "",
    ssl_ca: Annotated[
        str, typer.Option("--ssl-ca", metavar="FILE", help="The authority of the masters' certificates.")
    ] = "",
    ssl_cert: Annotated[str, typer.Option("--ssl-cert", metavar="FILE", help="Our certificate.")] = "",
    ssl_key: Annotated[str, typer.Option("--ssl-key", metavar="FILE", help="Its key.")] = "",
    token_file: Annotated[
        str, typer.Option("--token-file", metavar="FILE", help="The file of the token; default: $UNSHARD_TOKEN.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print DM's JSON on a terminal too.")] = False,
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version and exit.")] = False,
) -> None:
    """Run dmctl's verbs, with its flags and its JSON. Without a verb, on a terminal: a prompt.

    These flags may stand behind the verb too. check-task, binlog, binlog-schema, shard-ddl-lock and validation do
    without a master where the task's file is given. Exit code 0: the answer's result is true, 1: it is false, or there
    is no answer, 2: wrong use.
    """
    if version:
        from importlib import metadata

        typer.echo(f"unshard {metadata.version('unshard')}")
        raise typer.Exit
    outer = context.obj if isinstance(context.obj, CtlSession) else _of_environment()
    if config_file:
        outer = _of_file(outer, config_file)
    given = tuple(address for text in master_addr or () for address in addresses(text))
    session = replace(
        outer,
        masters=given or outer.masters,
        seconds=_seconds(rpc_timeout) or outer.seconds,
        security=_security(outer.security, ssl_ca, ssl_cert, ssl_key, f"file:{token_file}" if token_file else ""),
        sources=tuple(source or ()),
        as_json=as_json or outer.as_json,
    )
    context.obj = session
    if context.invoked_subcommand is None:
        _without_verb(context, session)


@ctl.command("help", hidden=True)
def help_(context: typer.Context, words: Annotated[list[str] | None, typer.Argument(metavar="VERB…")] = None) -> None:
    """Show what a verb does, and its flags."""
    above: Any = context.parent
    found: Any = above.command
    for word in words or ():
        found = getattr(found, "commands", {}).get(word)
        if found is None:
            raise typer.BadParameter(f"there is no verb {' '.join(words or ())}")
        above = type(context)(found, info_name=word, parent=above)
    typer.echo(found.get_help(above))


def _without_verb(context: typer.Context, session: CtlSession) -> None:
    from unshard.ctl.shell import piped, shell

    if sys.stdin.isatty() and sys.stdout.isatty():
        shell(context.command, session)
        return
    try:
        code = piped(context.command, session, sys.stdin) if not sys.stdin.isatty() else None
    except ValueError as error:
        raise typer.BadParameter(f"a line can't be taken apart: {str(error).lower()}") from None
    if code is None:
        typer.echo(context.get_help())
    raise typer.Exit(2 if code is None else code)


def _of_environment() -> CtlSession:
    return CtlSession(masters_of_environment(), DEFAULT_SECONDS, LinkSecurity(token=token_of_environment()))


def _of_file(outer: CtlSession, path: str) -> CtlSession:
    from unshard.config.files import load_process
    from unshard.config.listener import CtlConfig

    config = guarded(lambda: load_process(CtlConfig, path, {}))
    security = LinkSecurity(**{name: getattr(config, name) for name in LinkSecurity.model_fields})
    return replace(
        outer,
        masters=addresses(config.master_addr) or outer.masters,
        seconds=config.rpc_timeout,
        security=security if security.token else security.model_copy(update={"token": outer.security.token}),
    )


def _seconds(text: str) -> float:
    """Return the seconds of DM's `10m`; a bare number is seconds too. 0 for an empty text."""
    if not text:
        return 0.0
    try:
        seconds = float(text) if text.replace(".", "", 1).isdigit() else float(seconds_of(text))
    except ValueError as error:
        raise typer.BadParameter(f"--rpc-timeout: {error}") from None
    if seconds <= 0:
        raise typer.BadParameter("--rpc-timeout has to be more than 0")
    return seconds


def _security(outer: LinkSecurity, ca: str, cert: str, key: str, token: str) -> LinkSecurity:
    try:
        return LinkSecurity(
            cert_allowed_cn=outer.cert_allowed_cn if ca or outer.ssl_ca else (),
            ssl_ca=ca or outer.ssl_ca,
            ssl_cert=cert or outer.ssl_cert,
            ssl_key=key or outer.ssl_key,
            token=token or outer.token,
        )
    except ValidationError as error:
        raise typer.BadParameter(error.errors()[0]["msg"].removeprefix("Value error, ")) from None
