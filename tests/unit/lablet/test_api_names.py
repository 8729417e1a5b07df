"""Names made from names: legal, short enough, and never twice the same."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.lablet import names
from vkprovider.platform import wellknown
from vkprovider.portal.pure import portalnames

DNS_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
LABEL_VALUE = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")
labels = st.text(min_size=1, max_size=128) | st.text(alphabet="aA-_ .1", min_size=1, max_size=70)


@given(st.lists(labels, max_size=12))
def test_container_names_are_legal_and_differ(found: list[str]) -> None:
    """R004-017: a container's name says which device it stands for."""
    taken = {"lab"}
    made = [names.container_name(label, taken) for label in found]
    assert all(DNS_LABEL.match(name) for name in made)
    assert len(set(made)) == len(made)
    assert taken == {"lab", *made}
    assert len(taken) == len(made) + 1, "no device is called lab"


def test_container_names_of_a_hundred_equal_labels() -> None:
    taken: set[str] = set()
    made = [names.container_name("X" * 100, taken) for _ in range(110)]
    assert made[0] == "x" * 63
    assert made[1] == "x" * 61 + "-2"
    assert made[109] == "x" * 59 + "-110"


@pytest.mark.parametrize(
    ("label", "name"), [("R1", "r1"), ("a b", "a-b"), ("-x-", "x"), ("ÄÖ", "device"), ("a" * 62 + "-b", "a" * 62)]
)
def test_a_container_name_is_the_label_in_small(label: str, name: str) -> None:
    assert names.container_name(label, set()) == name


@given(st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,250}[a-z0-9])?", fullmatch=True), st.uuids(), st.uuids(), st.uuids())
def test_titles_fit_and_differ_by_pod(definition: str, uid: object, one: object, other: object) -> None:
    """R000-058, C31: CML's limit is 64 characters."""
    titles = [names.lab_title(definition, str(uid), str(pod)) for pod in (one, other)]
    assert all(len(title) <= names.TITLE_CHARS_MAX for title in titles)
    assert titles[0].endswith(str(one)), "the whole UID of the Pod is in it"
    assert (titles[0] == titles[1]) == (one == other)


@given(
    st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,250}[a-z0-9])?", fullmatch=True),
    st.from_regex(r"[0-9a-f]{64}", fullmatch=True),
)
def test_content_names_are_legal(definition: str, digest: str) -> None:
    name = names.content_name(definition, digest)
    assert re.match(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", name)
    assert len(name) <= 63
    assert name.endswith(digest[:16])


@given(st.text(max_size=100))
def test_label_values_are_legal(text: str) -> None:
    assert LABEL_VALUE.match(wellknown.label_value(text))


@pytest.mark.parametrize("value", ["2.9.1", "a_b-c.d", "x" * 63, ""])
def test_legal_label_values_stay(value: str) -> None:
    assert wellknown.label_value(value) == value


def test_a_node_is_named_after_its_worker() -> None:
    """R004-006."""
    assert names.node_name("w1") == "vnode.w1"
    assert names.worker_of("vnode.w1") == "w1"
    assert names.worker_of("vnode.a.b") == "a.b"
    assert names.worker_of("node-1") is None


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("2.9.1+build.7", (2, 9, 1)),
        ("2.10.0-dev0+build.1.abc", (2, 10, 0)),
        ("2.8.0", (2, 8, 0)),
        ("2.9", None),
        ("", None),
        ("v2.9.1", None),
        ("a.b.c", None),
        ("2.9.1" + "x" * 100, None),
        ("123.1.1", None),
        ("2.9.100", None),
    ],
)
def test_releases_of_cml(version: str, release: tuple[int, int, int] | None) -> None:
    assert names.cml_release(version) == release


@given(st.text(max_size=50))
def test_no_version_raises(version: str) -> None:
    release = names.cml_release(version)
    assert release is None or all(0 <= part < 100 for part in release)


def test_the_mark_names_the_installation() -> None:
    assert names.mark("u") == "vkprovider installation=u"


@pytest.mark.parametrize(
    ("worker_url", "link"),
    [
        ("https://cml-1.example.com", "https://cml-1.example.com/lab/l1"),
        ("https://cml-1.example.com:8443/api/v0", "https://cml-1.example.com:8443/lab/l1"),
        ("http://[2001:db8::1]", "http://[2001:db8::1]/lab/l1"),
        ("https://admin:secret@cml-1", "https://cml-1/lab/l1"),
        ("null://w1", ""),
        ("https://[", ""),
        ("", ""),
    ],
)
def test_link_to_a_lab_in_cmls_own_pages(worker_url: str, link: str) -> None:
    assert names.lab_url(worker_url, "l1") == link


def test_every_annotation_is_in_one_list() -> None:
    """One that is read and not listed would be lost where there are many; one that is reported could be forged."""
    elsewhere = {
        *(wellknown.ANNOTATION_INSTALLATION, wellknown.ANNOTATION_PROCESS, names.ANNOTATION_CML_BUILD),
        *(names.ANNOTATION_AGENTS_URL, wellknown.ANNOTATION_VERSION, names.ANNOTATION_PAGE_URL),
        *(names.ANNOTATION_USERNAME_PREFIX, names.ANNOTATION_IMAGE, portalnames.ANNOTATION_PROVISIONED),
        *(names.ANNOTATION_LINK_HASH, names.ANNOTATION_LINK_POD),
        *(names.ANNOTATION_NODE_LABELS, names.ANNOTATION_HOST, names.ANNOTATION_ABANDON, names.ANNOTATION_REFRESH),
        *(
            portalnames.ANNOTATION_USER,
            portalnames.ANNOTATION_REQUEST,
            portalnames.ANNOTATION_ENDING,
            portalnames.ANNOTATION_OPERATION,
        ),
        *(names.ANNOTATION_EXPOSED, names.ANNOTATION_MUX_ANSWER, portalnames.ANNOTATION_SEALED),
        *(
            names.ANNOTATION_DELETION_COST,
            names.ANNOTATION_APPROVED,
            names.ANNOTATION_CORDONED,
            wellknown.ANNOTATION_CLOCK_SKEW,
        ),
    }
    listed = [
        value
        for module in (names, wellknown, portalnames)
        for name, value in vars(module).items()
        if name.startswith("ANNOTATION_")
    ]
    assert sorted(listed) == sorted([*names.INPUTS, *names.REPORTS, *elsewhere])
    assert names.POD_ANNOTATIONS == names.INPUTS | names.REPORTS
