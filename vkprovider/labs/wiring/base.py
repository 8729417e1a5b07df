"""What the parts of the provider share; it is built before them."""

from dataclasses import dataclass

from vkprovider.labs.controllers.counters import Counters
from vkprovider.labs.controllers.lablet.index import LabletIndex
from vkprovider.labs.controllers.timeline import Timeline
from vkprovider.labs.controllers.worker.fleet import Fleet
from vkprovider.labs.controllers.worker.kubernetes import KubernetesVersion
from vkprovider.labs.settings.process import Settings
from vkprovider.labs.wiring.informers import Informers, informers
from vkprovider.labs.wiring.queues import Queues
from vkprovider.labs.wiring.tunnels import agents_notes
from vkprovider.platform.http.access import AccessControl
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.membership import Membership


@dataclass(frozen=True, slots=True)
class Base:
    """What the parts of the provider share.

    Attributes:
        ctx: The replica.
        settings: Its settings.
        membership: The replica among the others.
        access: Checks the rights of callers of the page.
        counters: What is counted about lablets.
        objects: What more than one part follows.
        queues: The work queues.
        fleet: The workers that this replica acts for.
        kubernetes: The version that our Nodes claim.
        index: The lablets on our Nodes.
    """

    ctx: Context
    settings: Settings
    membership: Membership
    access: AccessControl
    counters: Counters
    objects: Informers
    queues: Queues
    fleet: Fleet
    kubernetes: KubernetesVersion
    index: LabletIndex


def base(ctx: Context, settings: Settings) -> Base:
    """Build what the parts share; nothing is read or written."""
    counters = Counters(timeline=Timeline(settings.replica.timeline_file))
    queues, fleet = Queues(), Fleet()
    return Base(
        ctx=ctx,
        settings=settings,
        membership=Membership(ctx, settings.replica.lease_ttl_s, agents_notes(settings.http_tunnel)),
        access=AccessControl(ctx.kube, audiences=settings.http.token_audiences),
        counters=counters,
        objects=informers(ctx),
        queues=queues,
        fleet=fleet,
        kubernetes=KubernetesVersion(ctx),
        index=LabletIndex(ctx, counters, queues.lablets, fleet.items),
    )
