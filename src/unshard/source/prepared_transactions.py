"""Lists the XA transactions that a source has prepared. They outlive their connections, and may be committed later."""

from __future__ import annotations

from typing import Any

import MySQLdb

from unshard.mysql.connection import rows

_RECOVER = "XA RECOVER /*!50705 CONVERT XID */"
"""MySQL sends xids as hexadecimal digits; MariaDB ignores comments of this version, and sends their bytes."""

_MAY_NOT = frozenset({1227, 1401})
"""Access denied; MySQL 8 answers 1401 (XAER_RMERR) to an account without XA_RECOVER_ADMIN."""

_NOT_TEXT = "with an xid that is not text"


def prepared_xids(connection: Any) -> tuple[str, ...] | None:
    """Return the xids of all prepared XA transactions, as XA COMMIT takes them; None where the account may not ask.

    Raises MySQLdb.Error.
    """
    try:
        found = rows(connection, _RECOVER)
    except MySQLdb.Error as error:
        if error.args[0] in _MAY_NOT:
            return None
        raise
    except UnicodeDecodeError:  # servers before MySQL 5.7 and MariaDB 10.3 send any bytes as text
        return (_NOT_TEXT,)
    return tuple(_xid(number, length, more, data) for number, length, more, data in found)


def _xid(number: int, length: int, more: int, data: str | bytes) -> str:
    whole = data.encode() if isinstance(data, str) else data
    if len(whole) > length + more:
        whole = bytes.fromhex(whole[2:].decode())  # 0x and the digits
    first, second = whole[:length], whole[length:]
    if number != 1:
        return f"{_literal(first)},{_literal(second)},{number}"
    return f"{_literal(first)},{_literal(second)}" if second else _literal(first)


def _literal(value: bytes) -> str:
    text = value.decode("ascii", "replace")
    plain = value.isascii() and text.isprintable() and not set(text) & set("'\\")
    return f"'{text}'" if plain else f"X'{value.hex()}'"
