"""Options of `kubectl logs`, lines as a kubelet writes them, and what a path needs."""

import pytest

from vkprovider.labs.kubelet.callers import subresources_of, verb_of
from vkprovider.labs.kubelet.logs import parse, render
from vkprovider.labs.kubelet.spi import LogLine, LogOptions
from vkprovider.platform.errors import Invalid

NOW = 1_800_000_000.0


def test_without_options_everything_is_wanted() -> None:
    wanted = parse({}, NOW)
    assert wanted.options == LogOptions()
    assert (wanted.timestamps, wanted.limit_bytes, wanted.nothing) == (False, None, False)


def test_every_option() -> None:
    wanted = parse(
        {
            "follow": "true",
            "previous": "1",
            "timestamps": "True",
            "tailLines": "0",
            "sinceSeconds": "60",
            "limitBytes": "10",
            "stream": "All",
            "other": "x",
        },
        NOW,
    )
    assert wanted.options == LogOptions(follow=True, previous=True, since_at=NOW - 60, tail_lines=0)
    assert (wanted.timestamps, wanted.limit_bytes, wanted.nothing) == (True, 10, False)
    assert parse({"sinceTime": "2026-01-01T00:00:00Z"}, NOW).options.since_at == 1_767_225_600.0
    assert parse({"sinceTime": "2026-01-01T01:00:00.5+01:00"}, NOW).options.since_at == 1_767_225_600.5
    assert parse({"stream": "Stderr"}, NOW).nothing


@pytest.mark.parametrize(
    "query",
    [
        {"follow": "yes"},
        {"previous": "maybe"},
        {"timestamps": "2"},
        {"tailLines": "-1"},
        {"tailLines": "x"},
        {"tailLines": "9" * 40},
        {"tailLines": "1.5"},
        {"tailLines": "²"},
        {"sinceSeconds": "0"},
        {"sinceSeconds": "--1"},
        {"limitBytes": "0"},
        {"sinceTime": "yesterday"},
        {"sinceTime": "2026-01-01T00:00:00"},
        {"sinceTime": "2026-01-01T00:00:00Z", "sinceSeconds": "1"},
        {"stream": "Stdin"},
    ],
)
def test_a_wrong_option_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        parse(query, NOW)


def test_a_time_has_nine_digits() -> None:
    line = LogLine(1_767_225_600.25, "Router> \udc80")
    assert render(line, timestamps=False) == b"Router> ?\n"
    assert render(line, timestamps=True) == b"2026-01-01T00:00:00.250000000Z Router> ?\n"


@pytest.mark.parametrize(
    ("method", "path", "verb", "subresources"),
    [
        ("GET", "/exec/a/b/c", "create", ["proxy"]),
        ("POST", "/attach/a/b/c", "create", ["proxy"]),
        ("GET", "/portForward/a/b", "create", ["proxy"]),
        ("GET", "//exec/a/b/c", "create", ["proxy"]),
        ("GET", "/containerLogs/a/b/c", "get", ["proxy"]),
        ("GET", "/pods", "get", ["pods", "proxy"]),
        ("GET", "/podsecurity", "get", ["proxy"]),
        ("GET", "/runningpods/", "get", ["pods", "proxy"]),
        ("GET", "/metrics/resource", "get", ["metrics"]),
        ("GET", "/stats/summary", "get", ["stats"]),
        ("HEAD", "/healthz/ping", "get", ["healthz", "proxy"]),
        ("PUT", "/configz", "update", ["configz", "proxy"]),
        ("DELETE", "/logs/x", "delete", ["log"]),
        ("OPTIONS", "/", "options", ["proxy"]),
    ],
)
def test_what_a_request_needs(method: str, path: str, verb: str, subresources: list[str]) -> None:
    assert verb_of(method, path) == verb
    assert list(subresources_of(path)) == subresources
