"""Whether a browser's WebSockets come through to a portal at the addresses that people use: asked as the page asks.

The doctor asks from its own machine, with its own trust in certificates; what it cannot tell from there it says nothing
about.
"""

import asyncio
import os
from http import HTTPStatus
from typing import Final, NamedTuple

import aiohttp
from yarl import URL

from tunnels.outgoing import ProxyUnsupportedError, open_session, proxy_of
from vkprovider.doctor.findings import Finding, fault, note
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.platform.siteaddress import SiteAddress
from vkprovider.portal.checks.doors import SETTINGS
from vkprovider.portal.web.login import UPGRADE

_WITHIN_S: Final = 10.0


class RoadAnswer(NamedTuple):
    """What became of a WebSocket.

    Attributes:
        status: The HTTP status; 101 if it was opened; 0 without an answer.
        fault: Why there is no answer.
    """

    status: int
    fault: str = ""


async def ask_road(address: SiteAddress) -> RoadAnswer:
    """Open a WebSocket to a portal at one of its addresses, and close it."""
    url = URL(f"{address.scheme}://{address.host}{address.base}{UPGRADE}", encoded=True)
    origin = f"{address.scheme}://{address.host}"
    try:
        proxy = proxy_of(str(url), os.environ)
        async with (
            asyncio.timeout(_WITHIN_S),
            open_session(aiohttp.TCPConnector()) as session,
            session.ws_connect(url, origin=origin, proxy=proxy),
        ):
            return RoadAnswer(HTTPStatus.SWITCHING_PROTOCOLS)
    except aiohttp.WSServerHandshakeError as error:
        return RoadAnswer(error.status)
    except (aiohttp.ClientError, OSError, ProxyUnsupportedError) as error:
        return RoadAnswer(0, str(error) or type(error).__name__)


def check_road(namespace: str, address: SiteAddress, answer: RoadAnswer) -> list[Finding]:
    """Check that consoles open at an address.

    Args:
        namespace: The portal's.
        address: One of `VKPROVIDER_PORTAL_URLS`.
        answer: What was answered there.
    """
    where = f"{address.scheme}://{address.host}{address.base}"
    about = f"ConfigMap/{namespace}/{SETTINGS}"
    if answer.status == HTTPStatus.UPGRADE_REQUIRED:
        reason = DoctorReason.PROXY_CLOSED
        text = f"{where} answers, and no WebSocket comes through: no console opens in a browser"
        return [fault(about, reason, text, reason.remedy)]
    if not answer.status:
        reason = DoctorReason.ADDRESS_SILENT
        text = f"VKPROVIDER_PORTAL_URLS names {where}, which cannot be asked from here: {answer.fault}"
        return [note(about, reason, text, reason.remedy)]
    return []
