"""The error tree: which status is which error, and texts that stay short."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.lablet.reasons import DefinitionReason
from vkprovider.platform import errors


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.Invalid),
        (401, errors.Unauthorized),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (410, errors.Gone),
        (413, errors.Invalid),
        (422, errors.Invalid),
        (418, errors.Invalid),
        (429, errors.Throttled),
        (500, errors.Unavailable),
        (502, errors.Unavailable),
        (503, errors.Unavailable),
        (504, errors.Unavailable),
    ],
)
def test_every_status_has_its_error(status: int, kind: type[errors.OutsideError]) -> None:
    error = errors.from_status(status, "no")
    assert type(error) is kind
    assert (error.status, error.message, str(error)) == (status, "no", "no")


def test_a_throttle_says_when_to_come_back() -> None:
    error = errors.from_status(429, "slow down", after_s=7.0)
    assert isinstance(error, errors.Throttled)
    assert error.after_s == 7.0


@given(st.text(max_size=2000), st.integers(1, 300))
def test_foreign_texts_are_one_short_line(text: str, limit: int) -> None:
    short = errors.shorten(text, limit)
    assert len(short) <= limit
    assert "\n" not in short
    if len(" ".join(text.split())) <= limit:
        assert short == " ".join(text.split())


def test_a_page_of_html_does_not_reach_an_event() -> None:
    error = errors.Unavailable("<html>\n" * 1000, status=502)
    assert len(error.message) == 256


def test_a_deadline_may_be_retried_like_any_absence() -> None:
    assert issubclass(errors.DeadlineExceeded, errors.Unavailable)
    assert issubclass(errors.Throttled, errors.Unavailable)
    assert not issubclass(errors.InputError, errors.OutsideError)


def test_an_input_error_carries_reason_and_message() -> None:
    error = errors.InputError(DefinitionReason.TOPOLOGY_INVALID, "nodes is empty")
    assert (error.reason, error.message, str(error)) == (
        "TopologyInvalid",
        "nodes is empty",
        "TopologyInvalid: nodes is empty",
    )
