"""The user's description of a server as the `Endpoint` that connections take."""

from __future__ import annotations

from unshard.config.database import DatabaseConfig
from unshard.mysql.connection import Endpoint


def to_endpoint(database: DatabaseConfig) -> Endpoint:
    """Where to connect, with the password read. Raises ConfigError CONFIG-004 when it can't be."""
    security = database.security
    files = (("ca", security.ssl_ca), ("cert", security.ssl_cert), ("key", security.ssl_key))
    return Endpoint(
        host=database.host,
        port=database.port,
        user=database.user,
        password=database.secret(),
        session=tuple(database.session.items()),
        ssl=tuple((name, file) for name, file in files if file),
    )
