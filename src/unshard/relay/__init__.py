"""The relay log: the upstream's binlog files, kept byte for byte."""
