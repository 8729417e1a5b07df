"""What a user may begin from: the newest of what is on the menu, and which devices it sets."""

from vkprovider.lablet.archives import ArchiveEntry
from vkprovider.portal.pure.form import SAVED_OFFERED_MAX, saved_offer


def entry(number: int, definition: str = "netlab", *devices: str) -> ArchiveEntry:
    return ArchiveEntry(
        id=f"u{number}", namespace="n", pod="p", at=60 * number, definition=definition, version="1.0", devices=devices
    )


def test_devices_of_another_version_are_told_before() -> None:
    found = [entry(1, "netlab", "r1", "r2"), entry(2, "netlab", "r2"), entry(3, "other", "r1"), entry(4, "netlab")]
    offered = saved_offer(found, {"netlab"}, {"netlab": ["r1", "r3"]})
    assert [(each.value, each.text) for each in offered] == [
        ("u1", "netlab 1.0 of 1970-01-01 00:01 UTC: r1; not in the newest version: r2"),
        ("u2", "netlab 1.0 of 1970-01-01 00:02 UTC: no device; not in the newest version: r2"),
    ]


def test_a_definition_whose_devices_are_unknown_is_offered_as_saved() -> None:
    [offered] = saved_offer([entry(0, "netlab", "r1")], {"netlab"}, {"netlab": []})
    assert offered.text == "netlab 1.0 of 1970-01-01 00:00 UTC: r1"


def test_the_newest_are_offered() -> None:
    found = [entry(number, "netlab", "r1") for number in range(SAVED_OFFERED_MAX + 5, 0, -1)]
    offered = saved_offer(found, {"netlab"}, {})
    assert [each.value for each in offered] == [f"u{number}" for number in range(SAVED_OFFERED_MAX + 5, 5, -1)]
