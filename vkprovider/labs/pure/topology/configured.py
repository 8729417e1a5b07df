"""A topology whose devices begin with configurations that were saved of an earlier lab, where their labels agree.

The text that is imported is read and written once more: that is for lablets which begin from saved work alone, and what
was saved has no parameters, so that nothing in it is filled in.
"""

from collections.abc import Mapping
from typing import Any

from vkprovider.lablet.ports import HIDDEN_TAG, INFRASTRUCTURE_NODE_TYPES
from vkprovider.lablet.reasons import Trouble
from vkprovider.labs.pure.topology import yamltext
from vkprovider.labs.pure.topology.rewrite import replaced, texts_of
from vkprovider.platform.errors import InputError


def configured(text: str, saved: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return a topology with saved configurations, and the labels of those that are of no device of it.

    Args:
        text: As it is imported.
        saved: Label → configuration.

    Raises:
        InputError: `CreateContainerConfigError`: it is too large with them.
    """
    document, shared = yamltext.load(text)
    nodes = [_node(node, saved) for node in document["nodes"]]
    absent = sorted(saved.keys() - {node["label"] for node in nodes})
    try:
        written = yamltext.write({**document, "nodes": nodes}, shared=shared)
    except ValueError as error:
        raise InputError(Trouble.CREATE_CONTAINER_CONFIG_ERROR, f"the saved configurations: {error}") from None
    if len(written) > yamltext.CHARS_MAX:
        told = f"with the saved configurations the topology has more than {yamltext.CHARS_MAX} characters"
        raise InputError(Trouble.CREATE_CONTAINER_CONFIG_ERROR, told)
    return written, absent


def _node(node: dict[str, Any], saved: Mapping[str, str]) -> dict[str, Any]:
    """Return a node with its saved configuration in the place of its own: of several files that is the first.

    A device that learners do not see, and one whose configuration is its wiring, is left as it is.
    """
    text = saved.get(node["label"])
    kept = HIDDEN_TAG in (node.get("tags") or ()) or node.get("node_definition") in INFRASTRUCTURE_NODE_TYPES
    if text is None or kept:
        return node
    given = node.get("configuration")
    place = next((place for place, _ in texts_of(given)), ())
    return {**node, "configuration": replaced(given, place, text)}
