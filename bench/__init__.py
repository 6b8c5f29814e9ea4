"""How fast: our figures beside those of the usual tools, in the same call on the same machine."""
