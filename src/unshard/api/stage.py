"""Stages of a subtask and of a relay, with DM's names."""

from __future__ import annotations

from enum import StrEnum


class Stage(StrEnum):
    """What a subtask or relay is in, or is meant to be in. The last three are passed through, never asked for."""

    NEW = "New"
    RUNNING = "Running"
    PAUSED = "Paused"
    STOPPED = "Stopped"
    FINISHED = "Finished"
    PAUSING = "Pausing"
    RESUMING = "Resuming"
    STOPPING = "Stopping"


class UnitName(StrEnum):
    """The unit that a subtask is in, with DM's names."""

    NONE = "InvalidUnit"
    CHECK = "Check"
    DUMP = "Dump"
    LOAD = "Load"
    SYNC = "Sync"
    RELAY = "Relay"
