"""Which key a change of an object adds to which queue; Pods are passed to those that index them."""

from collections.abc import Iterable
from typing import Any

from vkprovider.api import names
from vkprovider.api.objects import ConfigMap, CustomResource, Node
from vkprovider.app.replica.informers import Informers
from vkprovider.app.replica.queues import Queues
from vkprovider.domain.definition.content import ANNOTATION_DEFINITION
from vkprovider.kube.informer import Informer
from vkprovider.runtime.ownership import Ownership


def queue_changes(
    objects: Informers, nodes: Informer[Node], queues: Queues, ownership: Ownership, *, agents: bool
) -> None:
    """Register the handlers that add keys to the queues of workers and definitions.

    Args:
        objects: What is followed.
        nodes: The Nodes of all workers.
        queues: The queues.
        ownership: Plans anew when a worker comes or goes.
        agents: Whether there are tunnels: an agent may be there whose worker is gone.
    """

    def worker_changed(old: CustomResource | None, new: CustomResource | None) -> None:
        if old is None or new is None or _asked(old) != _asked(new):  # else it is a status that a replica wrote
            queues.workers.add(_name(old, new))
            if ownership.membership.leads():  # it may be large enough for one that no worker held
                for name in objects.definitions.items:
                    queues.definitions.add(name)
        if old is None or new is None:
            ownership.plan.renew()
            if agents:
                queues.agents.add(_name(old, new))

    def node_changed(old: Node | None, new: Node | None) -> None:
        worker = names.worker_of(_name(old, new))
        if worker is not None:
            queues.workers.add(worker)

    def definition_changed(old: Any, new: Any) -> None:
        queues.definitions.add(_name(old, new))  # of its RuntimeClass, too

    def content_changed(old: ConfigMap | None, new: ConfigMap | None) -> None:
        config_map = new or old
        if config_map is not None:
            queues.definitions.add(config_map.metadata.annotations.get(ANNOTATION_DEFINITION, ""))

    objects.workers.add_handler(worker_changed)
    nodes.add_handler(node_changed)
    objects.definitions.add_handler(definition_changed)
    objects.runtime_classes.add_handler(definition_changed)
    objects.content.add_handler(content_changed)


def queue_all(objects: Informers, nodes: Informer[Node], queues: Queues, *, agents: Iterable[str]) -> None:
    """Add the keys of all that only the leading replica does.

    Args:
        objects: What is followed.
        nodes: The Nodes of all workers.
        queues: The queues.
        agents: The names of all agents.
    """
    for name in agents:
        queues.agents.add(name)
    for name in objects.definitions.items:
        queues.definitions.add(name)
    for node in nodes.items:
        if (worker := names.worker_of(node)) is not None:
            queues.workers.add(worker)


def _asked(resource: CustomResource) -> tuple[Any, ...]:
    """Return what people ask of a worker, as opposed to what replicas report."""
    meta = resource.metadata
    return meta.generation, meta.deletion_timestamp, meta.annotations, meta.finalizers


def _name(old: Any, new: Any) -> str:
    return str((new or old).metadata.name)
