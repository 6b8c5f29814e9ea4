from __future__ import annotations

import random
import zlib

from unshard.kernels.checksum import crc32


def test_it_is_the_crc_of_zlib() -> None:
    source = random.Random(1)
    for length in [*range(330), 1000, 65537]:
        data = source.randbytes(length)
        assert crc32(data) == zlib.crc32(data)
        assert crc32(memoryview(b"x" + data)[1:]) == zlib.crc32(data)
        assert crc32(data, tables_only=True) == zlib.crc32(data)
