"""Decodes the body of each event type into named fields for display. Row images are not decoded, nothing is validated.

Row images are not decoded, and no value is checked. A body that ends early raises Damaged, whatever its event. Layouts:
MySQL's `libs/mysql/binlog/event`, MariaDB's `sql/log_event.h`; all integers are little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from uuid import UUID

from unshard.binlog.query import Damaged, read_query

Fact = str | int | list[str]
Facts = dict[str, Fact]

_VARIABLES = {1: "LAST_INSERT_ID", 2: "INSERT_ID"}
_COMMIT_ID, _PREPARED_XA, _COMPLETED_XA = 0x02, 0x40, 0x80
_GTID_FLAGS = {0x01: "standalone", 0x04: "transactional", 0x08: "parallel", 0x10: "waited", 0x20: "ddl"}
_GTID_COUNT = 0x0FFFFFFF
_PAYLOAD_SIZE, _PAYLOAD_ALGORITHM, _PAYLOAD_PLAIN_SIZE = 1, 2, 3
_ALGORITHMS = {0: "zstd", 255: "none"}
_TAGGED = 1


class Body:
    """A cursor that reads forward through the body of one event. A read past the end raises Damaged."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes and move past them. Raises Damaged where there are fewer."""
        if size > len(self._data) - self._at:
            raise Damaged(f"{len(self._data)} bytes are too few for what it says it holds")
        self._at += size
        return self._data[self._at - size : self._at]

    def rest(self) -> bytes:
        """Return all bytes that are not read yet, and move to the end."""
        return self.take(len(self._data) - self._at)

    def left(self) -> int:
        """Return how many bytes are not read yet."""
        return len(self._data) - self._at

    def number(self, size: int) -> int:
        """Return the little-endian unsigned integer in the next `size` bytes. Raises Damaged."""
        return int.from_bytes(self.take(size), "little")

    def packed(self) -> int:
        """Read MySQL's packed integer."""
        first = self.number(1)
        return self.number({252: 2, 253: 3, 254: 8}[first]) if first in (252, 253, 254) else first

    def varlen(self) -> int:
        """Return an unsigned integer of MySQL's serialization.

        The low bits of the first byte say how many bytes follow.
        """
        first = self.number(1)
        more = 0
        while more < 8 and first >> more & 1:
            more += 1
        if more == 8:
            return self.number(8)
        return first >> more + 1 | self.number(more) << 7 - more


def facts(code: int, body: bytes) -> Facts:
    """Return the fields of an event of that code; none for an event whose body is unknown here. Raises Damaged."""
    return _READERS[code](Body(body)) if code in _READERS else {}


def _query(body: Body) -> Facts:
    query = read_query(body.rest())
    found: Facts = {"schema": query.schema, "sql": query.sql}
    return found | ({"error": query.error_code} if query.error_code else {})


def _rotate(body: Body) -> Facts:
    offset = body.number(8)
    return {"next": f"{_text(body.rest())}:{offset}"}


def _variable(body: Body) -> Facts:
    kind = body.number(1)
    return {_VARIABLES.get(kind, f"variable {kind}"): body.number(8)}


def _random(body: Body) -> Facts:
    return {"seeds": f"{body.number(8)}, {body.number(8)}"}


def _user_variable(body: Body) -> Facts:
    name = _text(body.take(body.number(4)))
    if body.number(1):
        return {"variable": f"@{name}", "value": "NULL"}
    kind, _ = body.number(1), body.number(4)
    value = body.take(body.number(4))
    texts: dict[int, Callable[[], str]] = {
        0: lambda: _text(value),
        1: lambda: str(struct.unpack("<d", value)[0]),
        2: lambda: str(int.from_bytes(value, "little", signed=True)),
    }
    if kind not in texts or (kind and len(value) != 8):
        return {"variable": f"@{name}", "bytes": value.hex()}
    return {"variable": f"@{name}", "value": texts[kind]()}


def _xid(body: Body) -> Facts:
    return {"xid": body.number(8)}


def _annotation(body: Body) -> Facts:
    return {"sql": _text(body.rest())}


def _rows_query(body: Body) -> Facts:
    body.take(1)  # a length that longer texts don't fit in
    return {"sql": _text(body.rest())}


def _mysql_gtid(body: Body) -> Facts:
    body.take(1)
    uuid, number = UUID(bytes=body.take(16)), body.number(8)
    found: Facts = {"gtid": f"{uuid}:{number}"}
    return found | _logical_clock(body)


def _anonymous_gtid(body: Body) -> Facts:
    body.take(25)
    found: Facts = {"gtid": "anonymous"}
    return found | _logical_clock(body)


def _logical_clock(body: Body) -> Facts:
    if not body.left() or body.number(1) != 2:
        return {}
    return {"last_committed": body.number(8), "sequence_number": body.number(8)}


def _tagged_gtid(body: Body) -> Facts:
    """Return the fields of a GTID_TAGGED, in MySQL's serialization.

    They are version, size, last field that must be known, then fields, each after its number.
    """
    for _ in range(3):
        body.varlen()
    found: dict[int, int] = {}
    uuid = tag = b""
    while body.left() and (number := body.varlen()) <= 5:
        if number == 1:
            uuid = bytes(body.varlen() & 0xFF for _ in range(16))
        elif number == 3:
            tag = body.take(body.varlen())
        else:
            found[number] = body.varlen()
    if not {2, 4, 5} <= found.keys() or not uuid:
        raise Damaged("a field of the GTID is missing")
    # these are signed, with the sign in the lowest bit
    number, committed, sequence = (found[field] >> 1 for field in (2, 4, 5))
    gtid = f"{UUID(bytes=uuid)}:{_text(tag)}:{number}"
    return {"gtid": gtid, "last_committed": committed, "sequence_number": sequence}


def _previous_gtids(body: Body) -> Facts:
    """Format 1, of servers that know tags, has the format in the first and last byte of the count."""
    count = body.number(8)
    tagged = count >> 56 == _TAGGED
    if tagged:
        count = count >> 8 & 0xFFFFFFFFFFFF
    sets: list[str] = []
    for _ in range(count):
        owner = str(UUID(bytes=body.take(16)))
        tag = _text(body.take(body.varlen())) if tagged else ""
        intervals = [(body.number(8), body.number(8) - 1) for _ in range(body.number(8))]
        runs = [f"{first}-{last}" if last > first else f"{first}" for first, last in intervals]
        sets.append(":".join([owner, *([tag] if tag else []), *runs]))
    return {"gtids": sets}


def _mariadb_gtid(body: Body) -> Facts:
    """Return the fields of a MARIADB_GTID. The server id of the GTID is in the header: `listing` adds it."""
    number, domain, flags = body.number(8), body.number(4), body.number(1)
    found: Facts = {"domain": domain, "number": number}
    names = [name for bit, name in _GTID_FLAGS.items() if flags & bit]
    if flags & _COMMIT_ID:
        found["commit_id"] = body.number(8)
    if flags & (_PREPARED_XA | _COMPLETED_XA):
        names.append("xa prepared" if flags & _PREPARED_XA else "xa completed")
        form, first, second = body.number(4), body.number(1), body.number(1)
        found["xid"] = _xa_name(form, body.take(first), body.take(second))
    return found | {"flags": names}


def _gtid_list(body: Body) -> Facts:
    count = body.number(4) & _GTID_COUNT
    listed = ((body.number(4), body.number(4), body.number(8)) for _ in range(count))
    return {"gtids": [f"{domain}-{server}-{number}" for domain, server, number in listed]}


def _binlog_checkpoint(body: Body) -> Facts:
    return {"file": _text(body.take(body.number(4)))}


def _start_encryption(body: Body) -> Facts:
    return {"scheme": body.number(1), "key_version": body.number(4)}


def _heartbeat(body: Body) -> Facts:
    return {"file": _text(body.rest())}


def _heartbeat_v2(body: Body) -> Facts:
    found: Facts = {}
    while kind := body.packed():
        value = body.take(body.packed())
        if kind == 1:
            found["file"] = _text(value)
        elif kind == 2:
            found["position"] = Body(value).packed()
    return found


def _incident(body: Body) -> Facts:
    return {"incident": body.number(2), "message": _text(body.take(body.number(1)))}


def _xa_prepare(body: Body) -> Facts:
    one_phase, form = body.number(1), body.number(4)
    first, second = body.number(4), body.number(4)
    found: Facts = {"xid": _xa_name(form, body.take(first), body.take(second))}
    return found | ({"one_phase": 1} if one_phase else {})


def _payload(body: Body) -> Facts:
    found: Facts = {}
    while kind := body.packed():
        value = Body(body.take(body.packed()))
        if kind == _PAYLOAD_ALGORITHM:
            number = value.packed()
            found["compression"] = _ALGORITHMS.get(number, f"algorithm {number}")
        elif kind in (_PAYLOAD_SIZE, _PAYLOAD_PLAIN_SIZE):
            found["compressed" if kind == _PAYLOAD_SIZE else "uncompressed"] = value.packed()
    return found


def _xa_name(form: int, first: bytes, second: bytes) -> str:
    return f"X'{first.hex()}',X'{second.hex()}',{form}"


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")


_READERS: dict[int, Callable[[Body], Facts]] = {
    2: _query,
    4: _rotate,
    5: _variable,
    13: _random,
    14: _user_variable,
    16: _xid,
    26: _incident,
    27: _heartbeat,
    29: _rows_query,
    33: _mysql_gtid,
    34: _anonymous_gtid,
    35: _previous_gtids,
    38: _xa_prepare,
    40: _payload,
    41: _heartbeat_v2,
    42: _tagged_gtid,
    160: _annotation,
    161: _binlog_checkpoint,
    162: _mariadb_gtid,
    163: _gtid_list,
    164: _start_encryption,
    165: _query,  # as it is unpacked
}
