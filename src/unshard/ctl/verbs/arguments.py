"""Arguments that several verbs take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TaskFile = Annotated[Path, typer.Argument(metavar="TASK.yaml", help="The task file, in DM's format.")]
TaskWord = Annotated[str, typer.Argument(metavar="TASK", help="A task's name, or its file.")]
TaskMaybe = Annotated[str, typer.Argument(metavar="TASK", help="A task's name, or its file.", show_default=False)]
