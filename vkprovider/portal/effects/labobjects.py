"""The writers of Namespaces and Pods of user labs, which show what they have written until the watches do."""

from typing import NamedTuple

from vkprovider.portal.effects.pods import Pods
from vkprovider.portal.effects.records import Records
from vkprovider.portal.informers import Informers
from vkprovider.runtime.context import Context


class LabObjects(NamedTuple):
    """Writes the objects of labs."""

    records: Records
    pods: Pods


def lab_objects(ctx: Context, seen: Informers) -> LabObjects:
    """Return the writers.

    Args:
        ctx: The replica.
        seen: What is followed; it shows what they write.
    """
    return LabObjects(Records(ctx, seen.namespaces.wrote), Pods(ctx, seen.pods.wrote))
