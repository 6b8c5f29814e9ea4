"""What the user writes: task and source files in DM's format, read strictly."""

from unshard.config.database import DatabaseConfig
from unshard.config.files import load_source, load_task, parse_source, parse_task
from unshard.config.source import SourceConfig
from unshard.config.subtask import SubtaskConfig, plan_subtasks
from unshard.config.task import TaskConfig

__all__ = [
    "DatabaseConfig",
    "SourceConfig",
    "SubtaskConfig",
    "TaskConfig",
    "load_source",
    "load_task",
    "parse_source",
    "parse_task",
    "plan_subtasks",
]
