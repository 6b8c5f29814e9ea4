"""The load unit: dump files into the target, each piece once.

`unit` makes the target's tables (`structure`) and gives the files out. A task (`task`) cuts each into the same pieces
in every attempt (`pieces`), rewrites and maps their rows (`sql_dump`), and commits a piece together with its row of
`checkpoint` (`write`; `split` where it is too large). Which tool wrote the folder only `contents` and `foreign` know.
"""
