"""The key of cookies, as an admin writes it."""

import pytest

from vkprovider.portal.settings import PortalProcessSettings

ZEROS = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="


@pytest.mark.parametrize("text", [ZEROS, f"{ZEROS}\n", f"  {ZEROS}"])
def test_a_key_of_32_bytes(text: str) -> None:
    settings = PortalProcessSettings.from_environment({"VKPROVIDER_PORTAL_COOKIE_KEY": text})
    assert settings.portal.cookie_secret == bytes(32)


def test_a_key_in_base64_for_urls() -> None:
    key = "_-8" + "A" * 40 + "="
    assert PortalProcessSettings.from_environment({"VKPROVIDER_PORTAL_COOKIE_KEY": key}).portal.cookie_secret == (
        b"\xff\xef" + bytes(30)
    )


def test_without_a_key() -> None:
    assert PortalProcessSettings.from_environment({}).portal.cookie_secret is None


@pytest.mark.parametrize(
    "text", ["short", "A" * 43, "A" * 40 + "====", ZEROS + ZEROS, "not base64 at all, not at all!", "\u00e9" * 44]
)
def test_what_is_no_key_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(Exception, match="is not 32 bytes in base64") as raised:
        PortalProcessSettings.from_environment({"VKPROVIDER_PORTAL_COOKIE_KEY": text})
    assert text not in str(raised.value)
