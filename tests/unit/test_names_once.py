"""A public class has a name of its own: who reads it in a traceback, or searches for it, finds one class."""

from tools.rooms import doubled_classes
from tools.sources import read_tree

ALLOWED = {
    "DeadlineExceeded": "the same error in the tree of the transports, which know nobody above them, and in ours",
    "Event": "a frame is called as it travels; the other is Kubernetes' own",
    "Response": "a frame is called as it travels; the other is that of HTTP",
}
"""Names that two classes have, and why."""


def test_names_of_public_classes_are_given_once() -> None:
    product = [module for module in read_tree(None) if module.path.startswith(("vkprovider/", "tunnels/"))]
    assert len(product) > 400
    assert {line.partition(":")[0] for line in doubled_classes(product)} == ALLOWED.keys()
