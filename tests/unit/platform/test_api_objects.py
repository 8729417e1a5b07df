"""Slim structs read what an API server sends: whole objects, and objects that say next to nothing."""

from typing import Any

import msgspec
import pytest

from vkprovider.platform import objects

BARE: dict[str, Any] = {"metadata": {"name": "x"}}


@pytest.mark.parametrize(
    "kind",
    [
        objects.Node,
        objects.ConfigMap,
        objects.RuntimeClass,
        objects.Lease,
        objects.CustomResource,
    ],
)
def test_an_object_that_says_next_to_nothing_is_read(kind: type[objects.Node]) -> None:
    found = msgspec.json.decode(msgspec.json.encode(BARE), type=kind)
    assert found.metadata.name == "x"
