"""Numbers that the JSON of MySQL and TiDB holds only rounded."""

from __future__ import annotations

import re

import pytest

from unshard.mysql.json_numbers import MAY_LOSE, loses_digits

EXACT = [
    "18446744073709551615", "-9223372036854775808", "0.1", "1.10", "1e3", "0", "-0.5", "123456789.12345", "1e308",
    "1.7976931348623157e308", "100000000000000000000000", "0.30000000000000004",
]  # fmt: skip
ROUNDED = [
    "18446744073709551617", "-9223372036854775809", "0.1234567890123456789", "1e400", "1e-400", "123456789012345.6789",
    "18446744073709551616123", "9" * 500,
]  # fmt: skip


@pytest.mark.parametrize("number", EXACT)
def test_a_number_that_is_kept(number: str) -> None:
    assert not loses_digits(f'{{"a": [{number}, "0.1234567890123456789"]}}')


@pytest.mark.parametrize("number", ROUNDED)
def test_a_number_that_is_not(number: str) -> None:
    text = f'["1\\"", {number}]'
    assert loses_digits(text)
    assert re.search(MAY_LOSE, text)


def test_a_text_that_is_no_document() -> None:
    assert not loses_digits("")
    assert not loses_digits("no")
