"""The reference page of HTTP: prose from `pages/http.md`, with the limits and refusals of the code filled in."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tools.markdown import NOTE, table
from tunnels.websocket import listening
from vkprovider.labs.http import archives, cloudevents, events, refusals
from vkprovider.mux.debug import routes
from vkprovider.platform import settings
from vkprovider.platform.http import access, connections
from vkprovider.platform.http.answers import Refused

PATH: Final = Path("docs/reference/http.md")
_PROSE: Final = Path(__file__).parent / "pages" / "http.md"
_PLACE: Final = re.compile(r"\{\{ (\w+) \}\}")
_KIB: Final = 1024
_PORTAL: Final = "vkprovider.portal."
"""Where kinds are that this page does not describe."""
_OF_AN_OBJECT: Final = "a [reason](../why.md)"
"""How the page calls the one kind of refusal whose word is not its name."""


def page() -> str:
    """Describe requests, answers and refusals."""
    facts = _facts()
    text = _PLACE.sub(lambda place: facts[place[1]], _PROSE.read_text(encoding="utf-8"))
    return NOTE.format(source="tools/pages/http.md or a class of refusals") + text


def kinds(base: type[Refused] = Refused) -> Iterator[type[Refused]]:
    """Yield every kind of refusal of the provider's page, in the order of their definition."""
    for kind in base.__subclasses__():
        if kind.__module__.startswith(_PORTAL):
            continue  # whether they are there depends on what else was imported
        yield kind
        yield from kinds(kind)


def _facts() -> Mapping[str, str]:
    """Return the text for each gap of the prose, by the gap's name."""
    fields = settings.HttpSettings.model_fields
    numbers = {
        "port": fields["port"].default,
        "remember_s": access.REMEMBER_S,
        "remember_refused_s": access.REMEMBER_REFUSED_S,
        "remember_unknown_s": access.REMEMBER_UNKNOWN_S,
        "reviews_per_s": access.REVIEWS_PER_S,
        "reviews_at_once": access.REVIEWS_AT_ONCE,
        "connections_max": connections.CONNECTIONS_MAX,
        "keepalive_s": connections.KEEPALIVE_S,
        "line_kib": connections.LINE_BYTES_MAX / _KIB,
        "field_kib": connections.FIELD_BYTES_MAX / _KIB,
        "stuck_s": connections.STUCK_S,
        "agents_max": listening.SOCKETS_MAX,
        "agents_of_a_name_max": listening.SOCKETS_OF_A_NAME_MAX,
        "unsure_max": events.UNSURE_MAX,
        "events_max": cloudevents.EVENTS_MAX,
        "password_slow_s": routes.SLOW_S,
        "probe_s": routes.TIMEOUT_S,
        "archives_page": archives.PAGE_SIZE,
        "body_mib": events.BODY_BYTES_MAX / _KIB**2,
        "secret_chars_min": settings.SECRET_CHARS_MIN,
        "events_retry_s": fields["events_retry_s"].default,
    }
    rows = [
        (_OF_AN_OBJECT if kind is refusals.ObjectInvalid else f"`{kind.__name__}`", str(kind.status_code), kind.remedy)
        for kind in kinds()
    ]
    return {name: f"{value:g}" for name, value in numbers.items()} | {
        "refusals": table([("Reason", "Status", "What to do"), *rows])
    }
