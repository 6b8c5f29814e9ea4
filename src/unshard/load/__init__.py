"""The load unit: dump files into the target, each piece once."""
