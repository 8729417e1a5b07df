"""The part of the kubelet API: its servers, and the devices that its sessions reach."""

from dataclasses import dataclass

from vkprovider.labs.controllers.console import usage
from vkprovider.labs.controllers.console.devices import LabletDevices
from vkprovider.labs.controllers.console.finding import Finder
from vkprovider.labs.controllers.console.open import Noting, OpenConsoles
from vkprovider.labs.wiring.base import Base, manners
from vkprovider.labs.wiring.kubelet import Kubelet
from vkprovider.labs.wiring.metrics import kubelet_measures
from vkprovider.labs.wiring.parts.definitions import DefinitionsPart
from vkprovider.platform.runtime.parts import Part


@dataclass(frozen=True, kw_only=True)
class KubeletPart(Part):
    """The part, and what other parts use of it.

    Attributes:
        opened: The consoles that are open.
        devices: The devices that sessions reach.
        kubelet: The kubelet API of our Nodes.
    """

    opened: OpenConsoles
    devices: LabletDevices
    kubelet: Kubelet


def kubelet(base: Base, definitions: DefinitionsPart) -> KubeletPart:
    """Build the part.

    Args:
        base: What all parts share.
        definitions: What devices are given, and the content that names them.

    Raises:
        InputError: `SettingInvalid`: the file of the devices' prompts is missing or wrong.
    """
    ctx, consoles, index, workers = base.ctx, base.settings.consoles, base.index, base.fleet.items
    noting = Noting(ctx, base.queues.lablets.add)
    opened, contents = OpenConsoles(noting.typed), definitions.definitions.contents
    finder = Finder(index.items, workers, contents)
    devices = LabletDevices(
        ctx,
        finder,
        opened,
        usage.UsageFigures(ctx, finder, definitions.given),
        manners=manners(consoles.prompts_file),
        exec_timeout_s=consoles.exec_timeout_s,
    )
    served = Kubelet(
        ctx,
        base.settings.kubelet,
        base.objects.pods.items,
        index.pods_on,
        workers,
        contents,
        devices,
        version=lambda: base.kubernetes.kubelet,
    )

    async def hand_over() -> None:
        opened.end()

    return KubeletPart(
        opened=opened,
        devices=devices,
        kubelet=served,
        loops=served.loops,
        measures=tuple(kubelet_measures(served)),
        hand_over=hand_over,
        close=served.close,
    )
