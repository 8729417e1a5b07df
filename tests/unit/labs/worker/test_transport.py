"""Which CMLWorkers are reported as insecure."""

from typing import Any

import pytest

from vkprovider.lablet.models.worker import parse_worker_spec
from vkprovider.labs.pure.worker.reach import insecure

UNVERIFIED = {"tls": {"insecureSkipVerify": True}}


@pytest.mark.parametrize(
    ("url", "more", "reason"),
    [
        ("https://cml", {}, None),
        ("https://cml", {"tls": {"caBundle": "PEM"}}, None),
        ("https://cml", UNVERIFIED, "NotVerified"),
        ("http://cml", {}, "PlainText"),
        ("HTTP://cml", UNVERIFIED, "PlainText"),
        ("null://w", UNVERIFIED, None),
    ],
)
def test_transport_that_others_could_read_or_answer_is_a_condition(
    url: str, more: dict[str, Any], reason: str | None
) -> None:
    said = insecure(parse_worker_spec({"url": url, **more}))
    assert (said.reason if said else None) == reason
    if said:
        assert (said.type, said.status) == ("TransportInsecure", "True")
        assert "spec.tls.caBundle" in said.message
