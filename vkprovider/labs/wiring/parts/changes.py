"""What wakes what: which change adds which key to which queue. All handlers stand here.

Some handlers only pass a change on: to the index of lablets, say, which adds the lablets that it concerns. Where one
controller wakes another (a claim is saved, a worker was observed, content is there), the call stands in the first.

| what changes | which keys it adds |
|---|---|
| a CMLWorker comes, goes, or asks for something else | `workers`; `definitions`, all, if this replica leads |
| its CML has another version, or other node definitions | `definitions`, all, if this replica leads |
| a CMLWorker comes or goes | `agents`, if there are tunnels; a new plan |
| a Node | `workers` |
| a LabletDefinition, a RuntimeClass | `definitions` |
| a content ConfigMap | `definitions` |
| a Pod | `lablets`, by the index, if this replica acts for its worker |
| the ConfigMap of claims goes | `claims`, by the passes |
| the slice of an exposed lablet, or the mux's answer in it | `lablets`, by the index |
| a session event is stored | `lablets`, by the inbox and the index |
| an agent comes, leaves, or says something else | `workers`, `agents` |
| an agent reports a change of its worker | `workers` |
| this replica begins to lead | `agents`, `definitions`, `workers`: all |
| it may act again | the same, and `claims`, `lablets`: all |
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

import structlog
from msgspec import UNSET

from vkprovider.lablet import names
from vkprovider.lablet.models.status import worker_status
from vkprovider.lablet.observations import DeviceFigures
from vkprovider.labs.controllers.worker.observer import Observer
from vkprovider.labs.controllers.worker.reconciler import Workers
from vkprovider.labs.pure.definition.content import ANNOTATION_DEFINITION
from vkprovider.labs.pure.topology.resources import boot_timeouts
from vkprovider.labs.wiring.base import Base
from vkprovider.labs.wiring.parts.definitions import DefinitionsPart
from vkprovider.labs.wiring.parts.kubelet import KubeletPart
from vkprovider.labs.wiring.parts.labs import LabsPart
from vkprovider.labs.wiring.parts.nodes import NodesPart, TunnelsPart
from vkprovider.labs.wiring.parts.sessions import SessionsPart
from vkprovider.platform.objects import ConfigMap, CustomResource, Node
from vkprovider.platform.runtime.parts import Change, Part

_log: Final = structlog.get_logger(__name__)


def changes(
    base: Base,
    definitions: DefinitionsPart,
    kubelet: KubeletPart,
    tunnels: TunnelsPart,
    nodes: NodesPart,
    sessions: SessionsPart,
    labs: LabsPart,
) -> Part:
    """Build the part that wakes the others."""
    objects, queues = base.objects, base.queues
    hubs, agents = bool(tunnels.tunnels.hubs), tunnels.tunnels

    def node_changed(old: Node | None, new: Node | None) -> None:
        if (worker := names.worker_of(_name(old, new))) is not None:
            queues.workers.add(worker)

    def definition_changed(old: Any, new: Any) -> None:
        queues.definitions.add(_name(old, new))  # a RuntimeClass has the name of its definition

    def content_changed(old: ConfigMap | None, new: ConfigMap | None) -> None:
        if (config_map := new or old) is not None:
            queues.definitions.add(config_map.metadata.annotations.get(ANNOTATION_DEFINITION, ""))

    def led() -> None:
        _queue_all(base, nodes.nodes.items, agents.names)

    def resumed() -> None:
        nodes.workers.resume()
        base.index.wake_all()

    def known() -> None:
        _log.info("everything is known", replica=base.ctx.replica, pods=len(objects.pods.items))
        base.index.wake_all()

    return Part(
        changes=(
            Change(objects.claims, labs.passes.claims_changed),
            Change(objects.workers, nodes.identities.changed),
            Change(objects.workers, partial(_node_definitions_changed, definitions)),
            Change(objects.workers, _worker_changed(base, nodes.ownership.plan.renew, has_agents=hubs)),
            Change(objects.pods, base.index.pod_changed),
            Change(objects.pods, sessions.inbox.pod_changed),
            Change(objects.pods, kubelet.kubelet.stories.pod_changed),
            Change(objects.pods, kubelet.devices.pod_changed),
            Change(objects.content, definitions.definitions.content_changed),
            Change(objects.slices, base.index.slice_changed),
            Change(objects.content, content_changed),
            Change(objects.definitions, definition_changed),
            Change(objects.runtime_classes, definition_changed),
            Change(nodes.nodes, node_changed),
        ),
        known=known,
        resumed=resumed,
        led=led,
    )


def _node_definitions_changed(
    definitions: DefinitionsPart, old: CustomResource | None, new: CustomResource | None
) -> None:
    known = worker_status(new).node_definitions if new is not None else UNSET
    figures = () if known is UNSET else known
    definitions.given.tell(_name(old, new), (DeviceFigures(one.name, one.cpus, one.ram) for one in figures))
    told = worker_status(new).boot_timeouts if new is not None else UNSET
    waits = (DeviceFigures(one.name, 0, 0, one.seconds) for one in (() if told is UNSET else told))
    definitions.given.tell_timeouts(_name(old, new), boot_timeouts(waits) if new is not None else None)


def _worker_changed(
    base: Base, replan: Callable[[], None], *, has_agents: bool
) -> Callable[[CustomResource | None, CustomResource | None], None]:
    """Return the handler of changes of CMLWorkers.

    Args:
        base: What all parts share.
        replan: Called by the handler when a worker comes or goes.
        has_agents: Whether there are tunnels: an agent may be there whose worker is gone.
    """
    queues = base.queues

    def changed(old: CustomResource | None, new: CustomResource | None) -> None:
        name = _name(old, new)
        if (
            _offered(old) != _offered(new)
        ) and base.membership.leads():  # a definition may fit that did not, or no more
            _add_all(queues.definitions.add, base.objects.definitions.items)
        if old is None or new is None or _asked(old) != _asked(new):  # else it is a status that a replica wrote
            queues.workers.add(name)
        if old is None or new is None:
            replan()
            if has_agents:
                queues.agents.add(name)

    return changed


def agent_handlers(base: Base, observer: Observer) -> tuple[Callable[[str], None], Callable[[str], None]]:
    """Return the handlers that `Tunnels` calls with an agent's name: of a change of the agent, and of its worker."""
    queues, workers = base.queues, base.fleet.items

    def happened(name: str) -> None:
        if (worker := workers.get(name)) is not None:
            observer.look_now(worker)
        queues.workers.add(name)

    def heard(name: str) -> None:
        happened(name)
        queues.agents.add(name)

    return heard, happened


def trigger(base: Base, workers: Workers) -> Mapping[str, int]:
    """Queue everything that this replica acts for; return the number of keys by queue."""
    ours, queues = base.fleet.items, base.queues
    lablets = [uid for uid, lablet in base.index.items.items() if lablet.worker in ours]
    definitions = list(base.objects.definitions.items)
    _add_all(queues.workers.add, ours)
    _add_all(queues.lablets.add, lablets)
    _add_all(queues.definitions.add, definitions)
    _add_all(workers.observe_soon, ours)
    found = {"workers": len(ours), "lablets": len(lablets), "definitions": len(definitions)}
    _log.info("a pass was asked for", **found)
    return found


def _queue_all(base: Base, nodes: Iterable[str], agents: Iterable[str]) -> None:
    """Add the keys of all that only the leading replica does.

    Args:
        base: What all parts share.
        nodes: The names of all Nodes.
        agents: The names of all agents.
    """
    queues = base.queues
    _add_all(queues.agents.add, agents)
    _add_all(queues.definitions.add, base.objects.definitions.items)
    _add_all(queues.workers.add, [worker for node in nodes if (worker := names.worker_of(node)) is not None])


def _add_all(add: Callable[[str], None], keys: Iterable[str]) -> None:
    for key in list(keys):
        add(key)


def _asked(resource: CustomResource) -> tuple[Any, ...]:
    """Return the fields by which people ask something of a worker, without the reports of replicas."""
    meta = resource.metadata
    return meta.generation, meta.deletion_timestamp, meta.annotations, meta.finalizers


def _offered(resource: CustomResource | None) -> tuple[Any, ...]:
    """Return the fields of a worker, if there is one, by which definitions fit or do not."""
    return (
        ()
        if resource is None
        else (
            *_asked(resource),
            resource.status.get("cmlVersion"),
            resource.status.get("nodeDefinitions"),
            resource.status.get("bootTimeouts"),
        )
    )


def _name(old: Any, new: Any) -> str:
    return str((new or old).metadata.name)
