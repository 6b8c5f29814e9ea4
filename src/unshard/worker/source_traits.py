"""What a source's statements take from their server."""

from __future__ import annotations

from unshard.mysql.connection import Endpoint, rows, session
from unshard.mysql.flavour import Flavour, identify
from unshard.sync.logged import SourceTraits

_OFFSET_OF_SYSTEM = """
SELECT CAST(TIME_TO_SEC(TIMEDIFF(CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM'), UTC_TIMESTAMP())) AS SIGNED)
"""


def read_traits(endpoint: Endpoint) -> SourceTraits:
    """Its flavour, how it folds names, and what SYSTEM is as a time zone there. Raises SourceError."""
    with session(endpoint, "source") as connection:
        server = identify(connection)
        ((names, zone),) = rows(connection, "SELECT @@lower_case_table_names, @@global.time_zone")
        if str(zone).upper() == "SYSTEM":
            ((seconds,),) = rows(connection, _OFFSET_OF_SYSTEM)
            sign, minutes = "-" if int(seconds) < 0 else "+", abs(int(seconds)) // 60
            zone = f"{sign}{minutes // 60:02}:{minutes % 60:02}"
        return SourceTraits(server.flavour is Flavour.MARIADB, int(names) == 1, str(zone))
