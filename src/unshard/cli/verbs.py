"""The table of the verbs of `unshard`; those of `ctl` are loaded where one of them is asked for."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup
from typer.main import get_group

CTL = "ctl"


class Verbs(TyperGroup):
    """The verbs of `unshard`, with `ctl` among them, which consists of more than all the others together."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), CTL]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name == CTL and CTL not in self.commands:
            from unshard.ctl.app import ctl

            ctl.info.name = CTL
            self.add_command(get_group(ctl), CTL)
        return super().get_command(ctx, cmd_name)
