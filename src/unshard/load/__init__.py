"""The load unit: dump files into the target, each piece once.

`unit` makes the target's tables (`structure`) and gives the files out. A task (`task`) cuts each file into the same
pieces in every attempt (`pieces`), rewrites and maps their rows (`sql_dump`), and commits a piece together with its row
of `checkpoint` (`write`, in smaller parts where a piece is too large). Only `contents` knows which tool wrote the
folder.
"""
