"""The forms that step *causality* compares text by are coarser than every collation of the server that it lets by."""

from __future__ import annotations

from random import Random

import pyarrow as pa

from unshard.sync.changes.causality import folded
from unshard.sync.planning.target_plan import ODD_COLLATIONS
from unshard.testing.throwaway_server import ThrowawayServer

ALPHABETS = ("abAB -_'", "cdglnstyzCSZ", "ijyuvwIJYUVW", "aeos", "chlrnjzdCHLRNJ", " -'./_a{|}@[]^")
PAIRS = "cs dz gy ly ny sz ty zs ch ll rr nj lj aa ae oe ue ss th ng ij ck dd ff ph ts"


def texts() -> list[str]:
    """Single characters, random texts of letters that belong together in some language, doubled and chained pairs."""
    random = Random(7)
    found = {chr(code) for code in range(0x20, 0x7F) if chr(code) not in "`~"}
    for alphabet in ALPHABETS:
        found |= {"".join(random.choices(alphabet, k=random.randint(1, 5))) for _ in range(60)}
    for pair in PAIRS.split():
        for one in (pair, pair.upper(), pair.title()):
            found |= {one, one + one, one[0] + one, one + one[-1], one[0], one[-1]}
    return sorted(found)


def assert_coarser(server: ThrowawayServer, schema: str, collations: list[tuple[str, str]]) -> int:
    """Hold texts that a (collation, charset) calls equal to have one form; how many groups of such there were."""
    words = texts()
    form = dict(zip(words, folded(pa.array(words)).to_pylist(), strict=True))
    values = ",".join(f"(0x{word.encode().hex()})" for word in words)
    groups = 0
    server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.words (w VARCHAR(20) CHARACTER SET utf8mb4)")
    server.run(f"INSERT INTO {schema}.words VALUES {values}")
    for collation, charset in collations:
        if collation.endswith("_bin") or charset == "binary" or any(name in collation for name in ODD_COLLATIONS):
            continue
        found = server.query(
            f"SELECT GROUP_CONCAT(HEX(w) SEPARATOR ',') FROM {schema}.words"
            f" WHERE HEX(CONVERT(CONVERT(w USING {charset}) USING utf8mb4)) = HEX(w)"
            f" GROUP BY CONVERT(w USING {charset}) COLLATE {collation} HAVING COUNT(*) > 1"
        )
        for (group,) in found:
            equal = [bytes.fromhex(text).decode() for text in str(group).split(",")]
            assert len({form[text] for text in equal}) == 1, f"{collation}: {equal}"
            groups += 1
    return groups
