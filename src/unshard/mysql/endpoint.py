"""Builds an `Endpoint`, from which connections are opened, from the settings of a database server."""

from __future__ import annotations

from unshard.config.database import DatabaseConfig, SecurityConfig
from unshard.mysql.connection import Endpoint
from unshard.mysql.tls import Material, Tls


def to_endpoint(database: DatabaseConfig) -> Endpoint:
    """Return the endpoint of a server, with its password read. Raises ConfigError as `DatabaseConfig.secret` does."""
    return Endpoint(
        host=database.host,
        port=database.port,
        user=database.user,
        password=database.secret(),
        session=tuple(database.session.items()),
        tls=_tls(database.security),
    )


def _tls(security: SecurityConfig) -> Tls | None:
    ca, cert, key = (Material(*security.pem(part)) for part in ("ca", "cert", "key"))
    return Tls(ca, cert, key, security.cert_allowed_cn) if ca or cert else None
