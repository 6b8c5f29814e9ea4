"""The relay log: the upstream's binlog files, kept byte for byte.

`unit` is the one thread that writes (`log`, `meta`). It begins where `beginning` decides, after the part of the last
file that `recover` found whole. Any number of readers follow with `log`; a `purge` never deletes a file that a reader
still needs.
"""
