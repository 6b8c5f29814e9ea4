"""GTIDs with tags, on bytes that MySQL 9.7 wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_events import File, refusal, take

from unshard.binlog.transaction_range import EndOfData, slices, splits
from unshard.errors import RelayError
from unshard.kernels.packets import EventChain
from unshard.model.gtid import MysqlGtidSet, origin_text
from unshard.model.position import FIRST_OFFSET, Position
from unshard.mysql.flavour import Flavour, Server
from unshard.relay.gtids import GtidTracker
from unshard.relay.log import RelayLog
from unshard.relay.meta import SubDirectory
from unshard.source.replica_protocol import ReplicaRequest, dump_command
from unshard.sync.source_log.seek import head_gtids

SERVER = Server(Flavour.MYSQL, (9, 7, 4), "9.7.4", 1, "63c41029-e56c-11f1-9b68-02fc00000001")
UUID = SERVER.uuid

# version 1, size 58, last field to know 0; flags 0; uuid, a byte of 128 and more in two; number 1; tag of 7; the rest
TAG_ONE_1 = bytes.fromhex(
    "02 74 00"
    "00 00"
    "02 c6 11 03 20 52 95 03 d8 22 c5 03 6d 02 d0 04 f1 03 00 00 00 02"
    "04 04"
    "06 0e 74 61 67 5f 6f 6e 65"
    "08 08 0a 0c 0c 7f b6 fa 3d a3 c2 60 06 10 55 04 12 83 12 0b"
)
TAG_ONE_2 = bytes.fromhex(
    "02 74 00 00 00 02 c6 11 03 20 52 95 03 d8 22 c5 03 6d 02 d0 04 f1 03 00 00 00 02 04 08 06 0e 74 61 67 5f 6f 6e 65"
    "08 08 0a 10 0c 7f 76 fd 3d a3 c2 60 06 10 55 04 12 83 12 0b"
)
# the largest number takes nine bytes behind its first
LARGEST = bytes.fromhex(
    "02 82 00 00 02 02 a9 02 a9 02 a9 02 a9 02 00 01 02 fe fd 03 41 02 f9 03 fd 03 02 04 06 08 0a"
    "04 ff fc ff ff ff ff ff ff ff 06 04 74 32 08 10 0a 14 0c 7f 63 4a 9d a4 c2 60 06 10 9d 03 12 83 12 0b"
)
# form 1 in the highest and the lowest byte, three origins; each: uuid, twice the tag's length, tag, intervals
PREVIOUS = bytes.fromhex(
    "01 03 00 00 00 00 00 01"
    "63 c4 10 29 e5 6c 11 f1 9b 68 02 fc 00 00 00 01 00"
    "01 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 05 00 00 00 00 00 00 00"
    "63 c4 10 29 e5 6c 11 f1 9b 68 02 fc 00 00 00 01 0e 74 61 67 5f 6f 6e 65"
    "01 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00"
    "63 c4 10 29 e5 6c 11 f1 9b 68 02 fc 00 00 00 01 08 7a 77 65 69"
    "01 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00"
)
LISTED = f"{UUID}:1-4:tag_one:1-2:zwei:1"


def group(file: File, body: bytes) -> int:
    start = file.event(42, body)
    file.query("BEGIN")
    file.table_map()
    file.rows()
    file.xid()
    return start


def test_tags_and_numbers() -> None:
    file = File(version=b"9.7.4")
    file.mysql_gtid(bytes.fromhex(UUID.replace("-", "")), 9)
    file.query("CREATE DATABASE d")
    first = group(file, TAG_ONE_1)
    second = group(file, TAG_ONE_2)
    third = group(file, LARGEST)
    log_range = take(file, first)
    assert log_range.stop == EndOfData()
    assert (log_range.transactions, log_range.gtids) == (
        3,
        (f"{UUID}:tag_one:1-2", "aaaaaaaa-0080-7fff-90fe-ff0102030405:t2:9223372036854775806"),
    )
    assert splits(bytes(file.data), first, log_range.end, 3) == (first, second, third)
    pieces = slices(bytes(file.data), first, log_range.end, third - second, checksum=True)
    assert [(one.start, one.maps) for one in pieces] == [(first, ()), (second, ()), (third, ())]
    chain = EventChain(len(file.data) - (len(file.data) - first))
    view = memoryview(bytes(file.data))
    assert chain.walk(view, view, len(view)) == 0
    runs = [(origin_text(origin), first, last) for origin, first, last in chain.take_gtids()]
    assert str(MysqlGtidSet().add(*runs)) == ",".join(sorted(log_range.gtids))


def test_a_plain_and_a_tagged_gtid_of_one_server_are_two() -> None:
    file = File(version=b"9.7.4")
    file.mysql_gtid(bytes.fromhex(UUID.replace("-", "")), 1)
    file.query("BEGIN")
    file.xid()
    group(file, TAG_ONE_2)
    assert take(file).gtids == (f"{UUID}:1", f"{UUID}:tag_one:2")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        TAG_ONE_1[:-1],
        b"\x04" + TAG_ONE_1[1:],
        TAG_ONE_1[:5] + b"\x04" + TAG_ONE_1[6:],  # another field in the uuid's place
        TAG_ONE_1[:28] + b"\0" + TAG_ONE_1[29:],  # number 0
        TAG_ONE_1[:28] + b"\x05" + TAG_ONE_1[29:],  # a negative number
        TAG_ONE_1[:30] + b"\x42" + TAG_ONE_1[31:],  # a tag of 33 characters
        TAG_ONE_1[:30] + b"\0" + TAG_ONE_1[31:],
        TAG_ONE_1[:31] + b"1" + TAG_ONE_1[32:],
        TAG_ONE_1[:33] + b"\xff" + TAG_ONE_1[34:],
        b"\x02\x06\x00",
        bytes(8),
        b"\xff" * 12,
    ],
)
def test_malformed_ones_are_named(body: bytes) -> None:
    file = File()
    at = file.event(42, body)
    error = refusal(file)
    assert (error.code, error.values["event"]) == ("BINLOG-002", "GTID_TAGGED")
    assert error.where.position == f"mysql-bin.000001:{at}"


def test_any_cut_or_changed_byte_gives_a_gtid_or_an_error() -> None:
    for cut in range(len(TAG_ONE_1)):
        file = File()
        file.event(42, TAG_ONE_1[:cut])
        assert refusal(file).code == "BINLOG-002"
    for place in range(len(TAG_ONE_1)):
        for value in (0x00, 0x03, 0x7F, 0xFF):
            file = File()
            group(file, TAG_ONE_1[:place] + bytes([value]) + TAG_ONE_1[place + 1 :])
            chain = EventChain(FIRST_OFFSET)
            view = memoryview(bytes(file.data))
            assert chain.append(view[4 : 4 + int.from_bytes(view[13:17], "little")]) == 0
            chain.walk(view, view, len(view))


def tracked(body: bytes) -> GtidTracker:
    file = File(version=b"9.7.4")
    file.event(35, body)
    tracker = GtidTracker(SERVER)
    tracker.begin_file(lambda length: bytes(file.data[:length]), FIRST_OFFSET)
    return tracker


def test_the_list_at_a_file_s_start() -> None:
    tracker = tracked(PREVIOUS)
    assert (tracker.known, MysqlGtidSet.parse(tracker.text)) == (True, MysqlGtidSet.parse(LISTED))
    assert tracked(bytes(8)).text == ""
    plain = (1).to_bytes(8, "little") + PREVIOUS[8:24] + PREVIOUS[25:49]
    assert tracked(plain).text == f"{UUID}:1-4"


def test_a_list_of_any_length(tmp_path: Path) -> None:
    """A server whose GTIDs have many gaps lists more than a megabyte."""
    gaps = 100_000
    runs = b"".join((2 * n + 1).to_bytes(8, "little") + (2 * n + 2).to_bytes(8, "little") for n in range(gaps))
    body = (1).to_bytes(8, "little") + PREVIOUS[8:24] + gaps.to_bytes(8, "little") + runs
    tracker = tracked(body)
    assert (tracker.known, tracker.text[-14:]) == (True, ":199997:199999")
    file = File(version=b"9.7.4")
    file.event(35, body)
    log = RelayLog(tmp_path, SubDirectory(UUID, 1))
    log.folder.mkdir()
    log.path("bin.000001").write_bytes(bytes(file.data))
    size = len(file.data)
    assert str(head_gtids(log, "bin.000001", Position("bin.000001", size))) == tracker.text
    assert str(head_gtids(log, "bin.000001", Position("bin.000002"))) == tracker.text
    assert head_gtids(log, "bin.000001", Position("bin.000001", size - 1)) is None


def test_a_file_without_a_list() -> None:
    file = File(version=b"5.5.0")
    for _ in range(5_000):
        file.query("BEGIN")
    tracker = GtidTracker(SERVER)
    asked: list[int] = []

    def head(length: int) -> bytes:
        asked.append(length)
        return bytes(file.data[:length])

    tracker.begin_file(head, FIRST_OFFSET)
    assert (tracker.known, asked) == (False, [1 << 16])


@pytest.mark.parametrize("body", [PREVIOUS[:-9], PREVIOUS[:30], b"\x01", PREVIOUS[:8]])
def test_a_list_that_can_t_be_read_is_refused(body: bytes) -> None:
    with pytest.raises(RelayError, match="RELAY-003"):
        tracked(body)


def test_a_stream_is_asked_for_by_a_set_with_tags() -> None:
    asked = dump_command(SERVER, ReplicaRequest(LISTED, 7, ""))
    assert asked.endswith(len(PREVIOUS).to_bytes(4, "little") + PREVIOUS)
    plain = dump_command(SERVER, ReplicaRequest(f"{UUID}:1-4", 7, ""))
    assert plain.endswith((1).to_bytes(8, "little") + PREVIOUS[8:24] + PREVIOUS[25:49])
