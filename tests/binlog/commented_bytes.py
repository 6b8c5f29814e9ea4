"""Bytes written by hand: hex, and behind a # what it means. Shared by the modules that document each event."""

from __future__ import annotations

from dataclasses import dataclass, field

from unshard.binlog.contents import Facts


def octets(text: str) -> bytes:
    return b"".join(bytes.fromhex(line.partition("#")[0]) for line in text.splitlines())


@dataclass(frozen=True, slots=True)
class Sample:
    """The body of one event (what stands between header and checksum), and what it says."""

    code: int
    body: bytes
    says: Facts = field(default_factory=dict)


def sample(code: int, text: str, **says: str | int | list[str]) -> Sample:
    return Sample(code, octets(text), says)
