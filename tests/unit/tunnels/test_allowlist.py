"""The allow-list lets through exactly what it names."""

import pytest

from tunnels.base import AllowList, RequestRefused

ALLOW = AllowList([("GET", "/api/v0/labs"), ("GET", "/api/v0/labs/{lab}"), ("PUT", "/api/v0/labs/{lab}/start")])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v0/labs"),
        ("GET", "/api/v0/labs/2a0b9d0e-6a65-4a4f-8f8e-0d2f1b0c9e11"),
        ("PUT", "/api/v0/labs/n_1/start"),
    ],
)
def test_what_is_named_passes(method: str, path: str) -> None:
    ALLOW.check(method, path)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v0/labs"),
        ("DELETE", "/api/v0/labs/x"),
        ("get", "/api/v0/labs"),
        ("GET", "/api/v0/labs/"),
        ("GET", "/api/v0/labs/x/"),
        ("GET", "/api/v0/labs/x/start"),
        ("GET", "/api/v0/labs/.."),
        ("GET", "/api/v0/labs/../system_stats"),
        ("GET", "/api/v0/labs/%2e%2e"),
        ("GET", "/api/v0/labs/x?show_all=true"),
        ("GET", "/api/v0/labs/x\n"),
        ("GET", "/api/v0/labs/x#y"),
        ("GET", "//evil/api/v0/labs"),
        ("GET", "/api/v0/labs/" + "x" * 65),
        ("PUT", "/api/v0/labs/x/y/start"),
        ("GET", "/apixv0/labs"),
        ("GET", ""),
    ],
)
def test_everything_else_is_refused(method: str, path: str) -> None:
    with pytest.raises(RequestRefused, match="allow-list"):
        ALLOW.check(method, path)


def test_an_empty_list_refuses_everything() -> None:
    assert not AllowList([]).allows("GET", "/")
