"""The assumed protocol of the LDS is a valid document, has the nine calls and every assumption in its table."""

import re
from importlib import resources
from typing import Any

import openapi_spec_validator
import pytest
import yaml

TEXT = resources.files("vkprovider.labs.lds").joinpath("openapi.yaml").read_text("utf-8")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return dict(yaml.safe_load(TEXT))


def test_protocol_is_valid(document: dict[str, Any]) -> None:
    openapi_spec_validator.validate(document)


def test_protocol_has_the_nine_calls(document: dict[str, Any]) -> None:
    """R000-100 … R000-105."""
    methods = ("get", "post", "put")
    calls = {path[method]["operationId"] for path in document["paths"].values() for method in methods if method in path}
    assert calls == {
        "create_session_with_part",
        "set_devices",
        "get_session_info",
        "get_login_url",
        "archive_session",
        "refresh_content",
        "collect_responses",
        "collect_user_feedback_by_session",
        "collect_user_feedback_by_form",
        # what recovery needs beside the nine
        "list_sessions",
        "get_info",
        # an extension
        "set_timeslot",
        # no part of the LDS
        "grade",
    }


def test_protocol_has_the_session_states(document: dict[str, Any]) -> None:
    """R000-089."""
    states = ["EMPTY", "PENDING", "PRELAUNCH", "RUNNING", "PAUSED", "USER_FINISHED", "ARCHIVED"]
    assert document["components"]["schemas"]["State"]["enum"] == states


def test_protocol_has_every_assumption_in_its_table(document: dict[str, Any]) -> None:
    rows = re.findall(r"^\| (A\d+) \|", document["info"]["description"], re.MULTILINE)
    assert rows == [f"A{number}" for number in range(1, len(rows) + 1)]
    below = TEXT.partition("\nservers:")[2]
    assert set(re.findall(r"\bA\d+\b", below)) <= set(rows)
