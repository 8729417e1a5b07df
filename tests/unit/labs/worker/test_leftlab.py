"""What is said of a lab that no claim names."""

import pytest

from vkprovider.labs.pure.worker.leftlab import removal, unclaimed_lab

LAB = "6f2c0000-0000-4000-8000-000000000001"


@pytest.mark.parametrize("url", ["https://cml-1.example.com", f"https://{'x' * 63}.{'y' * 63}.example.com:8443"])
def test_the_note_has_page_and_command_and_fits_into_an_event(url: str) -> None:
    note = unclaimed_lab(url, LAB, "t" * 64)
    assert removal(url, LAB) in note
    assert f"{url}/lab/{LAB}" in note
    assert "left alone" in note
    assert len(note) <= 1024


@pytest.mark.parametrize("url", ["", "null://w1"])
def test_without_a_page_there_is_no_command(url: str) -> None:
    note = unclaimed_lab(url, LAB, "title")
    assert "curl" not in note
    assert note.endswith("page")
