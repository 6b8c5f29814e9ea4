"""A source whose log was reset, or restored, while its task stood still and lost its relay folder: told, not passed."""

from __future__ import annotations

from shutil import rmtree

import pytest

from support.advice_walks import Walk

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery]

MORE = ["INSERT INTO {0} VALUES (100, 'of the new log')", "INSERT INTO {0} VALUES (101, 'of the new log')"]


def in_the_first_file(walk: Walk) -> None:
    """The checkpoint is far behind what the new log has for a while."""
    walk.source.run("RESET MASTER")
    walk.write(["INSERT INTO {0} SELECT seq, REPEAT('x', 20) FROM mysql.seq_1000_to_2000"])
    walk.followed()


def ends_anew(walk: Walk) -> None:
    rmtree(walk.relay)
    assert walk.fails() == "RELAY-009"
    walk.reset()
    walk.ends_equal(late=5000)


def test_a_new_log_that_goes_on_in_the_next_file(walk: Walk) -> None:
    in_the_first_file(walk)
    walk.source.run("RESET MASTER")
    walk.write([*MORE, "FLUSH BINARY LOGS", "INSERT INTO {0} VALUES (102, 'of its second file')"])
    ends_anew(walk)


@pytest.mark.faults
def test_a_new_log_that_is_still_shorter(walk: Walk) -> None:
    in_the_first_file(walk)
    walk.source.run("RESET MASTER")
    walk.write(MORE)
    ends_anew(walk)


@pytest.mark.faults
def test_a_new_log_with_other_transactions_up_to_the_checkpoint(walk: Walk) -> None:
    walk.source.run("RESET MASTER")
    walk.write(["FLUSH BINARY LOGS", "INSERT INTO {0} VALUES (90, 'of the log before')"])
    walk.followed()
    walk.source.run("RESET MASTER")
    walk.write([*MORE, "FLUSH BINARY LOGS", "INSERT INTO {0} VALUES (102, 'also of new log')"])
    rmtree(walk.relay)
    assert walk.files.applied("s1") is not None
    assert walk.fails() == "RELAY-009"
