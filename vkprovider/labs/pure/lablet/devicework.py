"""One device of a lab that runs: stopped, wiped or started on request, while all others go on.

A request on the Pod becomes a wish in the claim, which any replica carries on with. CML knows no restart, and wipes
only what is off, so that each is a row of steps; what is observed of the device says which of them is next:

    RESTART:  on → stop,  off → START        WIPE:  on → stop,  stopped → wipe,  wiped → START
    OFF:      on → stop                      CLEAR: on → stop,  stopped → wipe,  wiped → OFF
    START:    off → start, and BOOT          BOOT:  booted or off → no wish any more

A device with a wish is no failure, and the lab is judged by the others. One that is off although it was told to start
is a device like any other again: it is started by the lab's recovery.
"""

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from vkprovider.lablet import observations
from vkprovider.lablet.deviceacts import DeviceAct, act_of
from vkprovider.lablet.inputs import Inputs
from vkprovider.lablet.observations import DeviceFact
from vkprovider.labs.pure.claims.claim import Claim, Wish


class DeviceWork(NamedTuple):
    """What is next for the devices of a lab.

    Attributes:
        claim: With what changes in the claim first.
        taken: The requests that are taken up in it: label and act.
        device: The device to act on, if nothing has to be written first.
        act: What to tell CML of it; None if only the claim changes. RESTART is none of CML's.
    """

    claim: Claim
    taken: tuple[tuple[str, DeviceAct], ...] = ()
    device: DeviceFact | None = None
    act: DeviceAct | None = None


def judged(claim: Claim | None, devices: tuple[DeviceFact, ...]) -> tuple[DeviceFact, ...]:
    """Return the devices by which a lab is judged: those without a wish."""
    if claim is None or not claim.wishes:
        return devices
    return tuple(device for device in devices if device.label not in claim.wishes)


def untaken(inputs: Inputs, claim: Claim) -> dict[str, str]:
    """Return the requests of a Pod that the claim has not taken up yet, by the label of the device."""
    return {label: request for label, request in inputs.devices if claim.device_requests.get(label) != request}


def work_of(
    inputs: Inputs, claim: Claim, devices: Iterable[DeviceFact], held: Collection[tuple[str, DeviceAct]] = ()
) -> DeviceWork | None:
    """Return what is next; None if nothing is.

    Args:
        inputs: What the Pod asks for.
        claim: Of a lablet that was ready once.
        devices: All of its lab, as they are observed.
        held: What CML is not told now, by label: it was told a moment ago, or has just refused it.
    """
    if not claim.wishes and not inputs.devices:
        return None
    by_label = {device.label: device for device in devices}
    if (taken := _taken(inputs, claim, by_label)) is not None:
        return taken
    wishes = {
        label: after
        for label, wish in claim.wishes.items()
        if label in by_label and (after := _after(wish, by_label[label].state)) is not None
    }
    if wishes != claim.wishes:
        return DeviceWork(claim.wishing(wishes))
    for label, wish in sorted(wishes.items()):
        device = by_label[label]
        act = _act(wish, device.state)
        if act is not None and (label, act) not in held:
            told = claim.wishing({**wishes, label: Wish.BOOT}) if act is DeviceAct.START else claim
            return DeviceWork(told, device=device, act=act)
    return None


def _taken(inputs: Inputs, claim: Claim, by_label: dict[str, DeviceFact]) -> DeviceWork | None:
    """Take up what is asked anew; a request for a device that the lab does not have means nothing."""
    if not (fresh := untaken(inputs, claim)):
        return None
    acts = tuple((label, act) for label, request in fresh.items() if label in by_label and (act := act_of(request)))
    wishes = dict(claim.wishes)
    for label, act in acts:
        wishes[label] = _wish(act, wishes.get(label))
    return DeviceWork(claim.wishing(wishes, dict(inputs.devices)), acts)


_STAYS_OFF: Final = frozenset({Wish.OFF, Wish.CLEAR})


def _wish(act: DeviceAct, before: Wish | None) -> Wish:
    match act:
        case DeviceAct.STOP:
            return Wish.OFF
        case DeviceAct.WIPE:
            return Wish.CLEAR if before in _STAYS_OFF else Wish.WIPE
        case DeviceAct.RESTART if before not in _STAYS_OFF:
            return Wish.RESTART
        case _:
            return Wish.START


def _after(wish: Wish, state: str) -> Wish | None:
    """Return the wish as an observation leaves it; None if it is fulfilled."""
    is_on = state in observations.ACTIVE
    match wish:
        case Wish.RESTART if not is_on:
            return Wish.START
        case Wish.WIPE if state == observations.DEFINED:
            return Wish.START
        case Wish.CLEAR if state == observations.DEFINED:
            return Wish.OFF
        case Wish.START if is_on:
            return Wish.BOOT
        case Wish.BOOT if state == observations.BOOTED or not is_on:
            return None
        case _:
            return wish


def _act(wish: Wish, state: str) -> DeviceAct | None:
    if wish is Wish.BOOT:
        return None
    if wish is Wish.START:
        return DeviceAct.START
    if state in observations.ACTIVE:
        return DeviceAct.STOP
    return DeviceAct.WIPE if wish in {Wish.WIPE, Wish.CLEAR} and state == observations.STOPPED else None
