"""One HTTP request to a simulator, from a test without an event loop."""

import http.client
import json
import ssl
from typing import Any
from urllib.parse import urlsplit


def ask(url: str, method: str, path: str, body: object = None, token: str = "") -> tuple[int, Any]:
    """Send a request on a connection of its own; give the status and the decoded answer.

    The body is JSON, or bytes as they are.

    Raises:
        OSError: If nothing listens.
    """
    place = urlsplit(url)
    if place.scheme == "https":
        context = ssl._create_unverified_context()  # noqa: S323 (self-signed, on loopback)
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(place.netloc, timeout=10, context=context)
    else:
        connection = http.client.HTTPConnection(place.netloc, timeout=10)
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        connection.request(method, path, body if body is None or isinstance(body, bytes) else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    kind = answer.headers.get("Content-Type", "")
    return answer.status, json.loads(text) if text and "json" in kind else text.decode()
