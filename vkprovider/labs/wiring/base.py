"""What the parts of the provider share: what is followed, the queues, and tables that an admin may give in files.

Followed are `cmlworkers`, `labletdefinitions`, `pods` on our Nodes, `content` ConfigMaps, `runtimeclasses`, and that
the ConfigMaps of claims exist; `slices` of exposed lablets.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml

from vkprovider.lablet import exposure, names
from vkprovider.lablet.slimming import WholePod, slim_pod
from vkprovider.labs.controllers.counters import Counters, Timeline
from vkprovider.labs.controllers.lablet.index import LabletIndex
from vkprovider.labs.controllers.worker.node_writer import KubernetesVersion
from vkprovider.labs.controllers.worker.worker import Fleet
from vkprovider.labs.pure.console.manners import Manners, read_manners
from vkprovider.labs.pure.topology.resources import SHIPPED, NodeDefinition
from vkprovider.labs.settings.cluster import Settings
from vkprovider.labs.wiring.tunnels import agents_notes
from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError
from vkprovider.platform.http.access import AccessControl
from vkprovider.platform.kube.informer import ALERT, Informer
from vkprovider.platform.kube.queue import KeyedQueue
from vkprovider.platform.kube.resources import PartialObject
from vkprovider.platform.objects import ConfigMap, CustomResource, EndpointSlice, Pod, RuntimeClass
from vkprovider.platform.reasons import StartReason
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.membership import Membership

_LARGE_PAGE: Final = 10
"""Objects of up to 1 MiB in a page."""
_GROUP: Final = f"/apis/{wellknown.API_VERSION}"


@dataclass(frozen=True, slots=True)
class ProviderInformers:
    """Informers that more than one controller reads."""

    workers: Informer[CustomResource]
    definitions: Informer[CustomResource]
    pods: Informer[Pod]
    content: Informer[ConfigMap]
    runtime_classes: Informer[RuntimeClass]
    claims: Informer[PartialObject]
    slices: Informer[EndpointSlice]


def informers(ctx: Context) -> ProviderInformers:
    """Describe what is followed; nothing is read before the informers run."""
    kube = ctx.kube
    return ProviderInformers(
        workers=Informer(kube, f"{_GROUP}/cmlworkers", CustomResource, name="cmlworkers"),
        definitions=Informer(kube, f"{_GROUP}/labletdefinitions", CustomResource, name="labletdefinitions"),
        pods=Informer(
            kube,
            "/api/v1/pods",
            WholePod,
            name="pods",
            field_selector="spec.nodeName!=",
            keep=lambda head: head.spec.node_name.startswith(names.NODE_PREFIX),
            slim=slim_pod,
            sign=f'"nodeName":"{names.NODE_PREFIX}'.encode(),
            patience=ALERT,  # a learner waits for a Pod
        ),
        content=Informer(
            kube,
            f"/api/v1/namespaces/{ctx.namespace}/configmaps",
            ConfigMap,
            name="content",
            label_selector=f"{names.LABEL_COMPONENT}={names.COMPONENT_CONTENT}",
        ),
        runtime_classes=Informer(
            kube,
            "/apis/node.k8s.io/v1/runtimeclasses",
            RuntimeClass,
            name="runtimeclasses",
            label_selector=f"{names.LABEL_COMPONENT}={names.COMPONENT_RUNTIME_CLASS}",
        ),
        claims=Informer(
            kube,
            f"/api/v1/namespaces/{ctx.namespace}/configmaps",
            PartialObject,
            name="claims",
            label_selector=f"{names.LABEL_COMPONENT}={names.COMPONENT_CLAIMS}",
            brief=True,
            page_size=_LARGE_PAGE,
        ),
        slices=Informer(
            kube,
            ctx.api.endpoint_slices.path,
            EndpointSlice,
            name="slices",
            label_selector=exposure.selector(),
        ),
    )


_queue = KeyedQueue[str]


@dataclass(frozen=True, slots=True)
class Queues:
    """The queues of one replica.

    Attributes:
        workers: CMLWorkers, by name.
        agents: Agents that came, left or changed, by name.
        claims: CMLWorkers whose claims have changes to be written, by name.
        lablets: Lablets, by Pod UID.
        portcheck: Lablets whose ports are checked, by Pod UID.
        definitions: LabletDefinitions, by name.
        packages: LabletDefinitions whose content package is downloaded, by name; two packages in memory at most.
        lds_content: Forms whose content changed, by qualified name.
    """

    workers: KeyedQueue[str] = field(default_factory=lambda: _queue(name="workers", workers=64))
    agents: KeyedQueue[str] = field(default_factory=lambda: _queue(name="agents", workers=4))
    claims: KeyedQueue[str] = field(default_factory=lambda: _queue(name="claims", workers=64))
    lablets: KeyedQueue[str] = field(default_factory=lambda: _queue(name="lablets", workers=128, by_key=True))
    portcheck: KeyedQueue[str] = field(default_factory=lambda: _queue(name="portcheck", workers=16))
    definitions: KeyedQueue[str] = field(default_factory=lambda: _queue(name="definitions", workers=4))
    packages: KeyedQueue[str] = field(default_factory=lambda: _queue(name="packages", workers=2, backoff_s=(1.0, 60.0)))
    lds_content: KeyedQueue[str] = field(default_factory=lambda: _queue(name="lds-content", workers=1))


def node_definitions(path: str | None) -> dict[str, NodeDefinition]:
    """Return the shipped node definitions and those of a YAML file.

    Raises:
        InputError: `SettingInvalid`: the file is missing or wrong.
    """
    if path is None:
        return dict(SHIPPED)
    try:
        table = yaml.safe_load(Path(path).read_text("utf-8")) or {}
        return dict(SHIPPED) | {
            str(name): NodeDefinition(int(row["cpus"]), int(row["ram"]), bool(row.get("licensed", True)))
            for name, row in table.items()
        }
    except (OSError, yaml.YAMLError, AttributeError, TypeError, KeyError, ValueError) as error:
        text = f"VKPROVIDER_NODE_DEFINITIONS {path}: {error!r}; expected name: {{cpus, ram}}"
        raise InputError(StartReason.SETTING_INVALID, text) from None


def manners(path: str | None) -> Manners:
    """Return how devices talk at their consoles, with those of a YAML file.

    Raises:
        InputError: `SettingInvalid`: the file is missing or wrong.
    """
    if path is None:
        return Manners()
    try:
        return read_manners(yaml.safe_load(Path(path).read_text("utf-8")) or {})
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(StartReason.SETTING_INVALID, f"VKPROVIDER_CONSOLE_PROMPTS {path}: {error}") from None


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
    objects: ProviderInformers
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
