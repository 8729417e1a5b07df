"""Judges what goes over the wire by the assumed protocol of the LDS, whoever sent it."""

from dataclasses import dataclass, field
from importlib import resources
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import yaml
from openapi_core import OpenAPI
from openapi_core.datatypes import RequestParameters
from werkzeug.datastructures import Headers, ImmutableMultiDict

BASE: Final = "/api/v1"
PROTOCOL: Final = OpenAPI.from_dict(
    yaml.safe_load(resources.files("vkprovider.labs.lds").joinpath("openapi.yaml").read_text("utf-8"))
)


@dataclass(frozen=True)
class Asked:
    """A request as it arrived.

    Attributes:
        target: Path and query, as sent.
    """

    method: str
    target: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class Answered:
    """A response as it left."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


class _Request:
    def __init__(self, asked: Asked) -> None:
        url = urlsplit(asked.target)
        lower = {name.lower(): value for name, value in asked.headers.items()}
        self.host_url = "http://lds"
        self.path = url.path
        self.method = asked.method.lower()
        self.content_type = lower.get("content-type", "").partition(";")[0]
        self.body = asked.body or None
        self.parameters = RequestParameters(
            query=ImmutableMultiDict(parse_qsl(url.query, keep_blank_values=True)), header=Headers(asked.headers)
        )


class _Response:
    def __init__(self, answered: Answered) -> None:
        lower = {name.lower(): value for name, value in answered.headers.items()}
        self.status_code = answered.status
        self.data = answered.body
        self.content_type = lower.get("content-type", "").partition(";")[0]
        self.headers = Headers(answered.headers)


def judge_request(asked: Asked) -> None:
    """Judge a request.

    Raises:
        OpenAPIError: It is none of the protocol.
    """
    PROTOCOL.validate_request(_Request(asked))


def judge(asked: Asked, answered: Answered) -> None:
    """Judge a request and its answer.

    Raises:
        OpenAPIError: One of them is none of the protocol.
    """
    judge_request(asked)
    judge_answer(PROTOCOL, asked, answered)


def judge_answer(protocol: OpenAPI, asked: Asked, answered: Answered) -> None:
    """Judge an answer by another protocol.

    Raises:
        OpenAPIError: It is none of the protocol.
    """
    protocol.validate_response(_Request(asked), _Response(answered))
