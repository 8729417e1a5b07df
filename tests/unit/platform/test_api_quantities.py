"""Quantities: read as Kubernetes reads them, written as the API server gives them back."""

from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vkprovider.platform import quantities

AMOUNTS = st.integers(0, 2**62)


@given(AMOUNTS)
@example(0)
@example(1000)
@example(10**6)
def test_millicores_come_back(amount: int) -> None:
    amount //= 1000
    assert quantities.parse_millicores(quantities.format_millicores(amount)) == amount


@given(AMOUNTS)
@example(2**40)
@example(10**9)
def test_bytes_come_back(amount: int) -> None:
    assert quantities.parse_bytes(quantities.format_bytes(amount)) == amount


@given(AMOUNTS)
def test_counts_come_back(amount: int) -> None:
    assert quantities.parse(quantities.format_count(amount)) == amount


@pytest.mark.parametrize(
    ("text", "millicores"),
    [
        ("1", 1000),
        ("500m", 500),
        ("0.5", 500),
        (".5", 500),
        ("1n", 1),
        ("1u", 1),
        ("100u", 1),
        ("1001u", 2),
        ("+2", 2000),
        ("1e1", 10_000),
        ("1E1", 10_000),
        ("1k", 1_000_000),
        ("0", 0),
        (" 4 ", 4000),
    ],
)
def test_cpu_is_rounded_up(text: str, millicores: int) -> None:
    assert quantities.parse_millicores(text) == millicores


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1Ki", 1024),
        ("1.5Gi", 3 * 2**29),
        ("1M", 10**6),
        ("1E", 10**18),
        ("2e3", 2000),
        ("5Ei", 5 * 2**60),
        ("500m", 1),
        ("1Pi", 2**50),
    ],
)
def test_memory_is_read_in_every_unit(text: str, count: int) -> None:
    assert quantities.parse_bytes(text) == count


@pytest.mark.parametrize(("number", "millicores"), [(4, 4000), (0.5, 500), (1e3, 1_000_000)])
def test_numbers_are_quantities_too(number: float, millicores: int) -> None:
    assert quantities.parse_millicores(number) == millicores


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "1x",
        "1 Gi",
        "1gi",
        "1KI",
        "--1",
        "1.2.3",
        ".",
        "Gi",
        "NaN",
        "Infinity",
        "nan",
        "1e",
        "0x10",
        "1_000",
        "\u0661",
    ],
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        quantities.parse(text)


@pytest.mark.parametrize(
    "text", ["1e999999", "1e999999999", "1e99999999999999999999", "9" * 5000, "8Ei", "-1e999999", "x" * 100_000]
)
def test_numbers_without_end_are_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match="quantity") as caught:
        quantities.parse_bytes(text)
    assert len(str(caught.value)) < 200


@given(st.text(alphabet="0123456789.eE+-numkMGTPEi ", max_size=24))
def test_no_text_raises_anything_but_value_error(text: str) -> None:
    try:
        value = quantities.parse(text)
    except ValueError:
        return
    assert abs(value) < 2**63
    assert Decimal(quantities.parse_bytes(text)) >= value
    assert Decimal(quantities.parse_millicores(text)) >= value * 1000


@pytest.mark.parametrize(
    ("millicores", "text"), [(0, "0"), (1, "1m"), (1500, "1500m"), (2000, "2"), (1_000_000, "1k"), (1_500_000, "1500")]
)
def test_cpu_is_written_as_the_api_server_gives_it_back(millicores: int, text: str) -> None:
    assert quantities.format_millicores(millicores) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (1, "1"),
        (1000, "1k"),
        (1024, "1Ki"),
        (1536 * 2**20, "1536Mi"),
        (2**40, "1Ti"),
        (2**50, "1Pi"),
        (3 * 2**60, "3Ei"),
        (10**9 + 1, "1000000001"),
    ],
)
def test_memory_is_written_as_the_api_server_gives_it_back(count: int, text: str) -> None:
    assert quantities.format_bytes(count) == text
