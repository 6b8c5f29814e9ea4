"""MySQL's protocol and dialect, for source and target alike: connections, structures, types, collations.

| module | contents |
|---|---|
| `endpoint` | a configured server as an address to connect to |
| `tls` | TLS to a database server |
| `tls_fault` | the meaning of TLS failures |
| `connection` | connections; errors of the drivers as errors of the catalogue |
| `plain_socket` | the socket of a connection, for commands that the driver does not have |
| `failures` | error numbers of the servers, and which are worth another attempt |
| `target_session` | the settings of each session with the target |
| `flavour` | MySQL or MariaDB: version, identity, state of the binlog |
| `one_server` | which sources are one server |
| `tidb` | TiDB: whether a target is one, its sessions |
| `tidb_collations` | collations for a TiDB target |
| `grants` | the privileges of an account |
| `structure` | table structures read from a server |
| `schema_structures` | the structures of all tables of a schema |
| `defaults` | column defaults in SHOW CREATE TABLE |
| `triggers` | triggers of the target's tables |
| `types` | column types and the Arrow types of their values |
| `charsets` | character sets, exactly as the servers convert them |
| `charset_differences` | characters that a server decodes differently from Python |
| `collations` | collations by their ids |
| `collation_weights` | strings that two collations compare differently |
| `altered_values` | columns whose values the target stores in another form |
| `json_numbers` | numbers in JSON text that a target of MySQL or TiDB rounds |
"""
