"""The consoles, logs and ports of devices, wired: what the kubelet API reaches."""

from collections.abc import Mapping

from vkprovider.app.settings import Settings, manners
from vkprovider.controllers.console.devices import LabletDevices
from vkprovider.controllers.console.finding import Finder
from vkprovider.controllers.console.open import Opened
from vkprovider.controllers.console.usage import Usage
from vkprovider.controllers.context import Context
from vkprovider.controllers.lablet.state import Lablet
from vkprovider.controllers.worker.worker import Worker
from vkprovider.domain.definition.content import Content
from vkprovider.domain.topology.resources import NodeDefinition


def devices_of(
    ctx: Context,
    settings: Settings,
    lablets: Mapping[str, Lablet],
    workers: Mapping[str, Worker],
    contents: Mapping[str, Content],
    opened: Opened,
    given: Mapping[str, NodeDefinition],
) -> LabletDevices:
    """Return the devices of this replica's lablets.

    Args:
        ctx: The replica.
        settings: How devices talk, and how long a command may take.
        lablets: By Pod UID.
        workers: Those that this replica acts for, by name.
        contents: By digest.
        opened: What is open.
        given: What devices are given, by node definition.
    """
    finder, consoles = Finder(lablets, workers, contents), settings.consoles
    return LabletDevices(
        ctx,
        finder,
        opened,
        Usage(ctx, finder, given),
        manners=manners(consoles.prompts_file),
        exec_timeout_s=consoles.exec_timeout_s,
    )
