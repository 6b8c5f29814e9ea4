"""What a MariaDB or MySQL server is asked meanwhile. Counters would also count late ends of earlier sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from unshard.testing.throwaway_server import ThrowawayServer

ON = (
    "SET sql_log_bin = 0",
    "SET GLOBAL log_output = 'TABLE'",
    "TRUNCATE mysql.general_log",
    "SET GLOBAL general_log = 1",
)
"""Without the binlog: a task that follows the server would read the TRUNCATE there, and do something about it."""
OFF = ("SET GLOBAL general_log = 0", "SET GLOBAL log_output = 'FILE'")
ASKED = """
    SELECT command_type, CONVERT(argument USING utf8mb4) FROM mysql.general_log
    WHERE thread_id <> CONNECTION_ID() AND command_type <> 'Quit' ORDER BY event_time
"""
"""A session's end is logged in its own time, also that of a session which was there before the log."""


@contextmanager
def general_log(server: ThrowawayServer) -> Iterator[Callable[[], list[tuple[str, str]]]]:
    """Log what the server is asked until the end of the block.

    Yields a function that returns the kind ("Connect", "Query", …) and the text of each thing that others have asked
    so far, in order.
    """
    with closing(server.connection()) as connection, connection.cursor() as cursor:

        def asked() -> list[tuple[str, str]]:
            cursor.execute(ASKED)
            return [(str(kind), str(text)) for kind, text in cursor.fetchall()]

        for statement in ON:
            cursor.execute(statement)
        try:
            yield asked
        finally:
            for statement in OFF:
                cursor.execute(statement)
