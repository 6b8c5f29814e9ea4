"""The relay log: the upstream's binlog files, kept byte for byte.

`unit` is the one thread that writes (`writer`, `meta`); it begins where `beginning` says, behind what `recover` found
whole. Readers of any number follow with `log` and are never passed by a `purge`.
"""
