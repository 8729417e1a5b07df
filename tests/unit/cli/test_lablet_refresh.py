"""`kubectl lablet refresh`: which answer is the caller's own."""

from typing import Any

import msgspec
import pytest

from vkprovider.cli.lablet.refresh import Refreshed, Unanswered, answer_of
from vkprovider.lablet import names
from vkprovider.platform.objects import CustomResource

LAST = {"request": "mine", "requestedBy": "jane", "result": "Stored", "version": "1.1", "devices": 2}
REFRESHED = {"type": "Refreshed", "status": "True", "reason": "ContentStored", "message": "it is there"}


def definition(request: str, status: dict[str, Any], **meta: Any) -> CustomResource:
    notes = {names.ANNOTATION_REFRESH: request}
    return msgspec.convert(
        {"metadata": {"name": "netlab", "annotations": notes, **meta}, "status": status}, CustomResource
    )


def test_answer_to_the_own_request() -> None:
    """R000-076."""
    found = answer_of(definition("mine", {"lastRefresh": LAST, "conditions": [REFRESHED]}), "mine")
    assert found == Refreshed("netlab", "Stored", "1.1", 2, "jane", "ContentStored", "it is there")


@pytest.mark.parametrize("status", [{}, {"lastRefresh": LAST | {"request": "earlier"}, "conditions": [REFRESHED]}])
def test_answer_to_an_earlier_request_is_none(status: dict[str, Any]) -> None:
    assert answer_of(definition("mine", status), "mine") is None


def test_request_that_somebody_replaced() -> None:
    with pytest.raises(Unanswered, match="another refresh was requested"):
        answer_of(definition("another", {}), "mine")


def test_definition_that_goes_away() -> None:
    with pytest.raises(Unanswered, match="'netlab' is being deleted"):
        answer_of(definition("mine", {}, deletionTimestamp="2026-01-01T00:00:00Z"), "mine")
