"""Numbers, digests, sizes and ranges as people read them."""

from __future__ import annotations

import pytest

from app.models import text


@pytest.mark.parametrize(
    ("n_bytes", "wanted"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1023, "1,023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (4096, "4 KiB"),
        (5 * 1024**2, "5 MiB"),
        (3 * 1024**4, "3,072 GiB"),
    ],
)
def test_sizes_have_binary_units(n_bytes, wanted):
    assert text.size(n_bytes) == wanted


@pytest.mark.parametrize(
    ("time_ns", "wanted"),
    [
        (0, "–"),
        (900, "0.9 µs"),
        (12_345, "12 µs"),
        (412_000, "0.41 ms"),
        (38_200_000, "38.2 ms"),
        (1_500_000_000, "1.50 s"),
    ],
)
def test_times_have_fitting_units(time_ns, wanted):
    assert text.duration(time_ns) == wanted


def test_digest_is_eight_digits_in_groups_of_four():
    assert text.digest("9f2c41ab" + 24 * "0") == "9f2c 41ab"
    assert text.digest("") == "–"


def test_half_open_ranges_are_said_with_both_ends_in():
    assert text.span(0, 32) == "0 – 31"
    assert text.span(7, 8) == "7"
    assert text.span(5, 5) == "none"
    assert text.span(4096, 4100) == "4,096 – 4,099"


def test_inclusive_pairs_of_json():
    assert text.inclusive([0, 31]) == "0 – 31"
    assert text.inclusive(None) == "none"


def test_plurals():
    assert text.plural(1, "flip") == "1 flip"
    assert text.plural(1200, "flip") == "1,200 flips"
    assert text.plural(2, "index", "indices") == "2 indices"
