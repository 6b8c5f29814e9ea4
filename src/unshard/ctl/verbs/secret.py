"""Verbs of secrets: encrypted passwords, and tokens."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from unshard.api.verbs import Encrypt
from unshard.config import encryption
from unshard.config.access import Role, new_token
from unshard.ctl.session import CtlSession, ask, conclude


def encrypt(
    context: typer.Context,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="The password; default: ask for it, or read it from a pipe.")
    ] = "",
    key: Annotated[
        str, typer.Option("--secret-key-path", metavar="FILE", help="Encrypt here, with this key, without a master.")
    ] = "",
) -> None:
    """Encrypt a password with the cluster's key, for the `password` of a task or source file."""
    session: CtlSession = context.obj
    plain = text or _asked_for()
    if not key:
        ask(session, Encrypt(plaintext=plain))
        return

    def here() -> dict[str, Any]:
        encryption.use_key(key)
        return {"result": True, "msg": "", "ciphertext": encryption.encrypt(plain)}

    conclude(session, Encrypt.verb, here)


def _asked_for() -> str:
    if sys.stdin.isatty():
        return str(typer.prompt("password", hide_input=True, err=True))
    plain = sys.stdin.readline().removesuffix("\n").removesuffix("\r")
    if not plain:
        raise typer.BadParameter("give the password, as a word or through a pipe")
    return plain


def token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The caller's name, as in the audit log.")],
    role: Annotated[Role, typer.Argument(help="What the caller may do.")],
) -> None:
    """Create a token for a caller of master or worker. It is shown once, and kept nowhere; no master is asked."""
    made, digest = new_token()
    typer.echo(f"token: {made}")
    typer.echo("for the token-file of the masters:")
    typer.echo(f"  - {{name: {name}, role: {role}, sha256: {digest}}}")


def register(table: typer.Typer) -> None:
    """Add the verbs of this module to the table."""
    table.command("encrypt")(encrypt)
    table.command("token")(token)
