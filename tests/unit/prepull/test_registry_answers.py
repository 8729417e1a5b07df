"""Names of images, and what registries answer, as the distribution API has both (R002-068)."""

import base64

import pytest

from vkprovider.platform.errors import InputError
from vkprovider.portal.pure.nodeimages import ImageName
from vkprovider.prepull.distribution import Challenge, DockerConfig, challenge_of, next_page

DIGEST = f"sha256:{'a' * 64}"
HUB = "https://registry-1.docker.io"


@pytest.mark.parametrize(
    ("text", "tagged", "host"),
    [
        ("python", "docker.io/library/python:latest", "registry-1.docker.io"),
        ("lsstsqre/sciplat-lab:w_2022_37", "docker.io/lsstsqre/sciplat-lab:w_2022_37", "registry-1.docker.io"),
        ("index.docker.io/python:3", "docker.io/library/python:3", "registry-1.docker.io"),
        ("localhost:5000/a/b__c:1", "localhost:5000/a/b__c:1", "localhost:5000"),
        ("us-docker.pkg.dev/project/repo/image:x", "us-docker.pkg.dev/project/repo/image:x", "us-docker.pkg.dev"),
        (f"quay.io/a/b@{DIGEST}", f"quay.io/a/b@{DIGEST}", "quay.io"),
        (f"quay.io/a/b:1@{DIGEST}", "quay.io/a/b:1", "quay.io"),
    ],
)
def test_nothing_is_left_out_of_a_name(text: str, tagged: str, host: str) -> None:
    found = ImageName.parse(text)
    assert (found.tagged, found.api_host) == (tagged, host)


@pytest.mark.parametrize(
    "text", ["", "UPPER", "a:", "a b", "quay.io/", "quay.io//a", "a@sha256:1", "../a", f"a:{'x' * 129}"]
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no name of an image"):
        ImageName.parse(text)


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (
            'Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull,push"',
            Challenge(
                "https://auth.docker.io/token", {"service": "registry.docker.io", "scope": "repository:a/b:pull,push"}
            ),
        ),
        ('bearer realm="https://x.example/t"', Challenge("https://x.example/t", {"scope": "repository:a/b:pull"})),
        ('Basic realm="Registry"', Challenge("", {})),
        ('Bearer realm="http://x.example/t"', None),  # a login of https goes nowhere else
        ('Bearer realm="file:///etc/passwd"', None),
        ("Negotiate", None),
        ("", None),
    ],
)
def test_what_a_registry_asks_for(header: str, found: Challenge | None) -> None:
    assert challenge_of(header, HUB, "a/b") == found


@pytest.mark.parametrize(
    ("link", "found"),
    [
        ('</v2/a/tags/list?n=2&last=b%2Bc>; rel="next"', ("/v2/a/tags/list", {"n": "2", "last": "b+c"})),
        ("<https://quay.io/v2/a/tags/list?last=z>; rel=next", ("/v2/a/tags/list", {"last": "z"})),
        ('<https://other.example/v2/a/tags/list?last=z>; rel="next"', None),
        ('<http://quay.io/v2/a/tags/list?last=z>; rel="next"', None),
        ("</v2/_catalog>; rel=next", None),
        ("", None),
    ],
)
def test_the_next_page_is_of_the_same_list(link: str, found: tuple[str, dict[str, str]] | None) -> None:
    assert next_page(link, "https://quay.io/v2/a/tags/list") == found


def test_logins_are_those_of_docker_login() -> None:
    auth = base64.b64encode(b"oauth2accesstoken:to:ken").decode()
    config = DockerConfig({"https://us-docker.pkg.dev": {"auth": auth}, "https://index.docker.io/v1/": {"auth": "!"}})
    assert config.login_of("us-docker.pkg.dev") == ("oauth2accesstoken", "to:ken")
    assert config.login_of("docker.io") is None
    assert DockerConfig({"quay.io": {"username": "a", "password": "b"}}).login_of("quay.io") == ("a", "b")
