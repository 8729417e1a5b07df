"""The process of the provider: its list of parts, each built from the base and from the parts before it."""

from dataclasses import dataclass

from vkprovider.labs.controllers.worker.observer import Observer
from vkprovider.labs.lds.deployments import Deployments
from vkprovider.labs.lds.grader import HttpGrader
from vkprovider.labs.settings.cluster import Settings
from vkprovider.labs.wiring.base import Base, base
from vkprovider.labs.wiring.parts.admin import admin
from vkprovider.labs.wiring.parts.changes import agent_handlers, changes
from vkprovider.labs.wiring.parts.definitions import DefinitionsPart, definitions
from vkprovider.labs.wiring.parts.kubelet import KubeletPart, kubelet
from vkprovider.labs.wiring.parts.labs import LabsPart, labs
from vkprovider.labs.wiring.parts.nodes import NodesPart, TunnelsPart, nodes, tunnels
from vkprovider.labs.wiring.parts.sessions import SessionsPart, sessions
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.process import Process


@dataclass(frozen=True, slots=True)
class Provider:
    """One replica of the provider: its process, and the parts of it."""

    base: Base
    definitions: DefinitionsPart
    kubelet: KubeletPart
    tunnels: TunnelsPart
    nodes: NodesPart
    sessions: SessionsPart
    labs: LabsPart
    process: Process


def provider(
    ctx: Context, settings: Settings, *, deployments: Deployments | None = None, grader: HttpGrader | None = None
) -> Provider:
    """Build a replica of the provider; nothing is read or written before its process runs.

    Args:
        ctx: The replica.
        settings: Its settings.
        deployments: The LDS; None: no part in it. The caller closes it.
        grader: Grades the work of learners; None: nobody does. The caller closes it.

    Raises:
        InputError: `SettingInvalid`: a file that the settings name cannot be used.
    """
    shared = base(ctx, settings)
    of_definitions = definitions(shared, deployments)
    of_kubelet = kubelet(shared, of_definitions)
    observer = Observer(ctx, settings.workers, of_definitions.definitions.need)
    heard, happened = agent_handlers(shared, observer)
    of_tunnels = tunnels(shared, heard=heard, happened=happened)
    of_nodes = nodes(shared, of_definitions, of_kubelet, of_tunnels, observer)
    of_sessions = sessions(shared, of_definitions, deployments, grader)
    of_labs = labs(shared, of_definitions, of_nodes, of_sessions, announce=of_kubelet.opened.announce)
    built = of_definitions, of_kubelet, of_tunnels, of_nodes, of_sessions, of_labs
    parts = *built, changes(shared, *built)
    process = Process(ctx, shared.membership, (*parts, admin(shared, of_nodes.workers, parts)))
    return Provider(shared, *built, process)
