"""Who somebody is on a file system, by what the API server says of the token (R002-014)."""

import pytest

from vkprovider.platform.objects import Metadata
from vkprovider.portal.pure.posix import (
    EXTRA_GID,
    EXTRA_GROUPS,
    EXTRA_UID,
    NO_POSIX_USER,
    PosixGroup,
    PosixUser,
    posix_of,
)
from vkprovider.portal.pure.record import LabRequest, annotations_for, labels_for, record_of


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({}, NO_POSIX_USER),
        ({EXTRA_UID: ["1001"], EXTRA_GID: ["2001"]}, PosixUser(1001, 2001)),
        ({EXTRA_UID: ["0"]}, PosixUser(0)),
        ({EXTRA_UID: ["1", "2"], EXTRA_GID: ["-1"]}, NO_POSIX_USER),
        ({EXTRA_UID: ["4294967295"], EXTRA_GID: ["٣"]}, NO_POSIX_USER),
        (
            {EXTRA_GROUPS: ["net:2001", "a:b:7", "net:9", "none", ":3", "x:", "y:1e3"]},
            PosixUser(groups=(PosixGroup("net", 2001), PosixGroup("a:b", 7))),
        ),
    ],
)
def test_what_the_token_says_is_read_and_nothing_is_guessed(extra: dict[str, list[str]], expected: PosixUser) -> None:
    found = posix_of(extra)
    assert found == expected
    request = LabRequest(id="r1", at=1, definition="netlab:1.0", secrets=(), posix=found)
    meta = Metadata(
        "nublado-alice", "u1", labels=labels_for("x", "alice"), annotations=annotations_for("alice", request)
    )
    record = record_of(meta, "x")
    assert record is not None
    assert record.request == request, "the record keeps it"
