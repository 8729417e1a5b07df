"""The process of the provider: its list of parts, each built from the base and from the parts before it."""

from dataclasses import dataclass

from vkprovider.app.base import Base, base
from vkprovider.app.changes import agent_handlers, changes
from vkprovider.app.parts.admin import admin
from vkprovider.app.parts.definitions import DefinitionsPart, definitions
from vkprovider.app.parts.kubelet import KubeletPart, kubelet
from vkprovider.app.parts.labs import LabsPart, labs
from vkprovider.app.parts.nodes import NodesPart, nodes
from vkprovider.app.parts.sessions import SessionsPart, sessions
from vkprovider.app.parts.tunnels import TunnelsPart, tunnels
from vkprovider.app.settings import Settings
from vkprovider.controllers.worker.observer import Observer
from vkprovider.lds.deployments import Deployments
from vkprovider.lds.grader import HttpGrader
from vkprovider.runtime.context import Context
from vkprovider.runtime.process import Process


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
    defined = definitions(shared, deployments)
    served = kubelet(shared, defined)
    observer = Observer(ctx, settings.workers, defined.definitions.need)
    heard, happened = agent_handlers(shared, observer)
    dug = tunnels(shared, heard=heard, happened=happened)
    owned = nodes(shared, defined, served, dug, observer)
    delivered = sessions(shared, defined, deployments, grader)
    run = labs(shared, defined, owned, delivered)
    woken = changes(shared, defined, served, dug, owned, delivered, run)
    parts = defined, served, dug, owned, delivered, run, woken
    process = Process(ctx, shared.membership, (*parts, admin(shared, owned.workers, parts)))
    return Provider(shared, defined, served, dug, owned, delivered, run, process)
