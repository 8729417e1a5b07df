"""Settings of the portal that do not go together are refused at the start, in words (R002-009)."""

import pytest
from pydantic import ValidationError

from vkprovider.portal.settings import PortalProcessSettings


def test_an_unset_portal_keeps_to_the_seed() -> None:
    found = PortalProcessSettings.from_environment({}).portal
    assert (found.namespace_prefix, found.dialect, found.token_audiences) == ("nublado", "sqr066", ())


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"VKPROVIDER_PORTAL_CALLERS": "headers"}, "VKPROVIDER_PORTAL_INGRESS_SECRET"),
        ({"VKPROVIDER_PORTAL_DURATION_SECONDS": "90000"}, "VKPROVIDER_PORTAL_DURATION_MAX_SECONDS 43200"),
        ({"VKPROVIDER_PORTAL_NAMESPACE_PREFIX": "Nublado"}, "VKPROVIDER_PORTAL_NAMESPACE_PREFIX"),
        ({"VKPROVIDER_PORTAL_NAMESPACE_PREFIX": "a" * 21}, "VKPROVIDER_PORTAL_NAMESPACE_PREFIX"),
    ],
)
def test_what_does_not_go_together_is_refused(given: dict[str, str], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        PortalProcessSettings.from_environment(given)
