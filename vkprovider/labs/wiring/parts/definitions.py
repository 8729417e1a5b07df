"""The part of definitions: LabletDefinition → content and RuntimeClass, with downloads of content packages."""

from dataclasses import dataclass
from typing import Final

from vkprovider.labs.content.objects import open_store
from vkprovider.labs.content.parsing import shared_parser
from vkprovider.labs.controllers.definition.impediments import Impediments
from vkprovider.labs.controllers.definition.packages import LdsContent, Packages
from vkprovider.labs.controllers.definition.reconciler import Definitions
from vkprovider.labs.lds.deployments import Deployments
from vkprovider.labs.pure.topology.resources import NodeDefinitions
from vkprovider.labs.wiring.base import Base, node_definitions
from vkprovider.platform.runtime.parts import Part, Work

_FIRST_S: Final = 10.0
"""How long lablets wait for their definitions to be read at start; one that cannot be read must not hold the rest."""


@dataclass(frozen=True, kw_only=True)
class DefinitionsPart(Part):
    """The part, and what other parts use of it.

    Attributes:
        definitions: The reconciler, which knows all definitions and their content.
        given: What devices are given, by node definition.
    """

    definitions: Definitions
    given: NodeDefinitions


def definitions(base: Base, deployments: Deployments | None) -> DefinitionsPart:
    """Build the part.

    Args:
        base: What all parts share.
        deployments: The LDS, whose content is refreshed; None: no part in it.

    Raises:
        InputError: `SettingInvalid`: the file of node definitions is missing or wrong.
    """
    ctx, settings, objects, queues = base.ctx, base.settings, base.objects, base.queues
    parser = shared_parser()
    lds_content = LdsContent(deployments if settings.lds.refresh_content else None, queues.lds_content)
    packages = Packages(
        open_store(settings.content), parser, settings.packages, queues.packages, queues.definitions.add
    )
    given = NodeDefinitions(node_definitions(settings.content.node_definitions_file))
    reconciler = Definitions(
        ctx,
        objects.definitions.items.get,
        objects.runtime_classes.items.get,
        lambda: list(objects.content.items.values()),
        base.membership.leads,
        packages,
        Impediments(ctx, objects.workers.items.values, settings.ports.range),
        parser=parser,
        node_definitions=given,
        boot_timeouts=given.timeouts,
        start_timeout_s=settings.lablets.start_timeout_s,
        ports_max=settings.ports.per_instance_max,
        reconcile_s=settings.workers.reconcile_s,
        form_stored=lds_content.changed,
        changed=base.index.definition_changed,
    )
    return DefinitionsPart(
        definitions=reconciler,
        given=given,
        informers=(objects.definitions, objects.content, objects.runtime_classes),
        works=(
            Work(queues.definitions, reconciler.reconcile, is_early=True, first_s=_FIRST_S),
            Work(queues.packages, packages.fetch, is_early=True),
            Work(queues.lds_content, lds_content.refresh, is_early=True),
        ),
    )
