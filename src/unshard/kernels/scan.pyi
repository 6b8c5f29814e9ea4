from mmap import mmap

KINDS: dict[str, int]
REASONS: dict[str, int]

class Scanner:
    offset: int
    event: int
    length: int
    timestamp: int
    end: int
    transactions: int
    row_events: int
    first_timestamp: int
    last_timestamp: int
    tables: set[tuple[bytes, bytes]]
    group_start: int
    group_rows: int
    partial_images: bool
    group_partial: bool
    group_flags: int
    in_group: bool
    grouped: bool
    def __init__(
        self, data: bytes | memoryview | mmap, start: int, size: int, budget: int, checksum: bool, kind_of: bytes
    ) -> None: ...
    def close(self) -> None: ...
    def run(self) -> int: ...
    def open_group(self) -> None: ...
    def skip(self) -> None: ...
    def close_group(self) -> None: ...
    def take_group(self, packed: Scanner) -> None: ...
    def drop_group_rows(self) -> None: ...
    @property
    def group_tables(self) -> list[tuple[bytes, bytes]]: ...
    def group_gtid(self) -> tuple[bytes, int] | None: ...
    def gtids(self) -> list[tuple[bytes, int, int]]: ...
