"""`kubectl exec -- config DEVICE`: the present configuration of a device, as CML extracts it."""

from typing import Final

from vkprovider.lablet.labs import BOOTED
from vkprovider.lablet.reasons import ConsoleReason
from vkprovider.lablet.visibility import HIDDEN_TAG, INFRASTRUCTURE_NODE_TYPES
from vkprovider.labs.controllers.console.finding import FoundDevice
from vkprovider.labs.kubelet.spi import Exit, RemoteCommand
from vkprovider.platform.errors import InputError, Invalid, Unavailable

CONFIG: Final = "config"
"""`exec -c lab -- config DEVICE` prints a configuration; in the container of a device the word is typed there."""


async def print_configuration(device: FoundDevice, command: RemoteCommand) -> Exit:
    """Have CML extract the configuration of a device, and print it.

    Raises:
        InputError: `NoConfiguration`, `DeviceOff`.
        OutsideError: CML did not answer.
    """
    text = await _extracted(device)
    await command.write((text.replace("\n", "\r\n") if command.tty else text).encode())
    return Exit(0)


async def _extracted(device: FoundDevice) -> str:
    fact, pod = device.fact, device.place.claim.pod
    if fact.definition in INFRASTRUCTURE_NODE_TYPES:
        raise _none(f"a device of the kind {fact.definition}, such as {fact.label}, has no configuration")
    content = device.place.content
    if content is None:
        raise Unavailable(f"the content of pod {pod} is not known yet")
    if any(each.label == fact.label and HIDDEN_TAG in each.tags for each in content.topology.devices):
        raise _none(f"{fact.label} is hidden: its definition tags it `{HIDDEN_TAG}`")
    if fact.state != BOOTED:
        text = f"the configuration of {fact.label} cannot be extracted while the device is {fact.state}"
        raise InputError(ConsoleReason.DEVICE_OFF, text)
    configs, faults = await device.worker.labs.extract_configs(device.lab_id, (fact,))
    error = faults.get(fact.label)
    if isinstance(error, Invalid):
        raise _none(f"CML extracts no configuration of {fact.label}, a device of the kind {fact.definition}")
    if error is not None:
        raise error
    if fact.label not in configs:
        raise _none(f"the configuration of {fact.label} ({fact.definition}) is empty")
    return configs[fact.label]


def _none(text: str) -> InputError:
    return InputError(ConsoleReason.NO_CONFIGURATION, text)
