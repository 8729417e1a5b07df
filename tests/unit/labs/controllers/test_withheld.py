"""What is left of a worker's refusal of an import that held values of Secrets."""

import pytest

from vkprovider.labs.controllers.lablet.gather import withheld
from vkprovider.platform.errors import (
    Conflict,
    DeadlineExceeded,
    Forbidden,
    Invalid,
    OutsideError,
    Throttled,
    TlsFailed,
    Unauthorized,
    Unavailable,
)

TEXT = "POST /import: bad: enable s3cr3t"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Invalid(TEXT, status=400), Invalid),
        (Invalid(TEXT, status=302), Invalid),
        (Forbidden(TEXT, status=403), Forbidden),
        (Conflict(TEXT, status=409), Conflict),
        (Unavailable(TEXT, status=404), Unavailable),
        (Unavailable(TEXT, status=200), Unavailable),
        (Unavailable(TEXT, status=503), Unavailable),
        (Throttled(TEXT, status=429, after_s=7.0), Throttled),
    ],
    ids=lambda value: getattr(value, "status", ""),
)
def test_an_answer_is_not_quoted(error: OutsideError, kind: type[OutsideError]) -> None:
    found = withheld(error)
    assert (type(found), found.status) == (kind, error.status)
    assert "s3cr3t" not in f"{found} {found.message} {found!r}"
    assert f"the worker answered {error.status}" in found.message
    assert getattr(found, "after_s", None) == getattr(error, "after_s", None)


@pytest.mark.parametrize(
    "error", [Unavailable("refused"), DeadlineExceeded("late"), TlsFailed("expired"), Unauthorized("login", status=401)]
)
def test_what_cannot_quote_stays_as_it_is(error: OutsideError) -> None:
    assert withheld(error) is error
