"""What `operate-source -p` prints: a source file to begin with."""

from __future__ import annotations

SAMPLE_SOURCE = """\
source-id: "shop-01"             # its name in tasks and commands

# follow by GTID: wanted where the source may fail over to another server
enable-gtid: true

# keep the relay log also while no task needs it
enable-relay: false
# relay-binlog-name: ""          # where the relay log begins; empty: at the oldest binlog of the source
# relay-binlog-gtid: ""
# relay-dir: "./relay-dir"

from:
  host: "127.0.0.1"
  port: 3306
  user: "unshard"
  # plain, `env:NAME`, `file:PATH`, or what `unshard ctl encrypt` prints
  password: "env:SHOP_01_PASSWORD"

# which events of this source no task gets
# filters:
#   - schema-pattern: "shop"
#     table-pattern: "*"
#     events: ["truncate table"]
#     action: Ignore

# how long relay files are kept that nobody needs any more
# purge:
#   interval: 3600               # seconds between two looks
#   expires: 0                   # hours; 0: no limit of age
#   remain-space: 15             # GB that stay free on the disk
"""
