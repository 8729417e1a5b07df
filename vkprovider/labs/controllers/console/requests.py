"""`exec -c lab -- hand-in`, `-- reset` and `-- device ACT DEVICE`: a learner asks for what is written on the Pod.

Who may open the consoles of a lablet may ask for these, and needs no right to change the Pod: the provider writes the
annotation, for `hand-in` and `reset` the one that `kubectl lablet collect` and `reset` write. It stands on the Pod, so
that a request that was taken survives every replica. What cannot be undone asks, or wants to be told `--yes`.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

from vkprovider.lablet import names
from vkprovider.lablet.deviceacts import DeviceAct, act_of, noted, written
from vkprovider.lablet.inputs import inputs_of
from vkprovider.lablet.reasons import ConsoleReason
from vkprovider.lablet.standing import State, has_ended, learner_in
from vkprovider.labs.controllers.console.commands import ESCAPE
from vkprovider.labs.controllers.console.finding import FoundDevice, FoundLablet, check
from vkprovider.labs.kubelet.spi import Exit, RemoteCommand
from vkprovider.labs.pure.claims.claim import Wish
from vkprovider.labs.pure.lablet.devicework import untaken
from vkprovider.platform.errors import Conflict, InputError, NotFound, Unavailable
from vkprovider.platform.kube.flow import Lane
from vkprovider.platform.objects import Pod
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.times import iso

REQUESTS: Final = frozenset({names.HAND_IN, names.RESET})
_ANSWER_S: Final = 300.0
"""How long a question waits for its answer."""
_ANSWER_CHARS_MAX: Final = 16
_LEAVING: Final = (b"\x03", b"\x04", ESCAPE)
_RUBOUT: Final = ("\x7f", "\x08")
_YES: Final = frozenset({"y", "yes"})
_SURE: Final = frozenset({"--yes", "-y"})
_NOTHING_DONE: Final = "Nothing was done."
_DEVICE_WORDS: Final = 2
_TRIES: Final = 5


async def request(ctx: Context, place: FoundLablet, words: Sequence[str], command: RemoteCommand) -> Exit:
    """Ask, unless the words say that it is meant, and write the request on the Pod.

    Args:
        ctx: The replica.
        place: The lablet.
        words: The command, whose first word is one of `REQUESTS`.
        command: The session; it ends with the answer, not with what was asked for.

    Raises:
        InputError: `CommandInvalid`, `NotConfirmed`, `NothingToDo`.
        OutsideError: It was not written.
    """
    word, options = words[0], set(words[1:])
    if options - _SURE:
        raise InputError(ConsoleReason.COMMAND_INVALID, f"write `{word}` or `{word} --yes`")
    pod = _pod_of(place)
    question, done = _words(word, pod, place)
    if place.claim.closing_reason and word == names.HAND_IN:
        return await _say(command, done, 0)
    if not options:
        if not await _agrees(question, word, pod, command):
            return await _say(command, _NOTHING_DONE, 1)
        pod = _still_of(place, learner_in(pod))
    meta = pod.metadata
    pods = ctx.api.pods.within(meta.namespace).metadata_only
    body = {"metadata": {"annotations": _notes(word, pod, ctx.now_unix)}}
    check(place.worker)
    try:
        await pods.patch_status(meta.name, body, uid=meta.uid, guard=place.worker.guard, lane=Lane.RESULT)
    except Conflict:
        raise NotFound(f"pod {meta.name} is another one now") from None
    return await _say(command, done, 0)


async def request_of_device(
    ctx: Context, device: FoundDevice, act: DeviceAct, command: RemoteCommand, *, sure: bool
) -> Exit:
    """Ask, where something is lost by it and it was not said to be meant; write the request on the Pod.

    Args:
        ctx: The replica.
        device: The device.
        act: What is asked of it.
        command: The session; it ends with the answer, not with what was asked for.
        sure: Whether it was said to be meant.

    Raises:
        InputError: `NotConfirmed`, `NothingToDo`.
        OutsideError: It was not written.
    """
    pod, claim, label = _pod_of(device.place), device.place.claim, device.label
    if claim.closing_reason:
        raise _nothing(f"the time of {learner_in(pod) or 'its learner'} with {claim.pod} is over")
    if not claim.ready_at or claim.stopped_at or claim.resetting:
        raise _nothing(f"the lab of {claim.pod} does not run: wait until it is Ready")
    if act is DeviceAct.START and device.is_on and label not in claim.wishes:
        raise _nothing(f"{label} runs")
    if act is DeviceAct.STOP and claim.wishes.get(label) is Wish.OFF:
        raise _nothing(f"{label} is stopped already")
    question = act.question(label)
    if question and not sure:
        if not await _agrees(question, f"{names.DEVICE} {act} {label}", pod, command):
            return await _say(command, _NOTHING_DONE, 1)
        _still_of(device.place, learner_in(pod))
    await _note_device(ctx, device, written(act, ctx.now_unix))
    return await _say(command, act.told(label), 0)


def device_asked(words: Sequence[str]) -> tuple[DeviceAct, str, bool]:
    """Return what `device ACT DEVICE` asks for, of which device, and whether it says that it is meant.

    Raises:
        InputError: `CommandInvalid`.
    """
    named = [word for word in words[1:] if word not in _SURE]
    act = act_of(named[0]) if len(named) == _DEVICE_WORDS else None
    if act is None:
        acts = "|".join(DeviceAct)
        raise InputError(ConsoleReason.COMMAND_INVALID, f"write `{names.DEVICE} {acts} DEVICE [--yes]`")
    return act, named[1], not _SURE.isdisjoint(words)


async def _note_device(ctx: Context, device: FoundDevice, request_: str) -> None:
    """Add a request to those that the Pod has and that are not taken up yet: two may come at the same moment.

    Raises:
        OutsideError: It was not written; `NotFound`: the Pod is another one now.
    """
    worker, claim = device.worker, device.place.claim
    pods = ctx.api.pods.within(claim.namespace).metadata_only
    for _ in range(_TRIES):
        found = await pods.get(claim.pod)
        if found is None or found.metadata.uid != claim.pod_uid:
            break
        meta = found.metadata
        requests = untaken(inputs_of(meta), claim) | {device.label: request_}
        notes = {names.ANNOTATION_DEVICE_REQUESTS: noted(requests)}
        check(worker)
        with contextlib.suppress(Conflict):
            await pods.patch_status(
                meta.name,
                {"metadata": {"annotations": notes}},
                uid=meta.uid,
                resource_version=meta.resource_version,
                guard=worker.guard,
                lane=Lane.RESULT,
            )
            return
    else:
        raise Unavailable(f"pod {claim.pod} changes all the time: run the command again")
    raise NotFound(f"pod {claim.pod} is another one now")


def _pod_of(place: FoundLablet) -> Pod:
    """Return the Pod of a lablet that lives.

    Raises:
        InputError: `NothingToDo`.
    """
    pod = place.lablet.pod
    if pod is None or has_ended(pod) or pod.metadata.deletion_timestamp is not None:
        raise _nothing(f"pod {place.claim.pod} has ended")
    return pod


def _still_of(place: FoundLablet, learner: str) -> Pod:
    """Return the Pod, which is still the learner's: the answer to a question may come minutes later.

    Raises:
        InputError: `NothingToDo`.
    """
    pod, claim = _pod_of(place), place.worker.claims.claims.get(place.claim.pod_uid)
    if claim is None or claim.closing_reason or claim.lent_back or learner_in(pod) != learner:
        raise _nothing(f"the time of {learner or 'whoever asked'} with {place.claim.pod} is over: {_NOTHING_DONE}")
    return pod


def _words(word: str, pod: Pod, place: FoundLablet) -> tuple[str, str]:
    """Return the question, and what is said when it is done.

    Raises:
        InputError: `NothingToDo`.
    """
    name, learner = pod.metadata.name, learner_in(pod)
    if word == names.HAND_IN:
        if not learner:
            raise _nothing(f"nobody has the lablet {name}: there is nothing to hand in")
        text = f"Hand in the work of {learner} in {name}? The time with this lab ends now, and does not come back."
        return text, f"Handed in: the work of {learner} is being collected. The lab ends, and so does this way into it."
    if place.claim.closing_reason:
        raise _nothing(f"the time of {learner or 'its learner'} with {name} is over: the lab is not reset any more")
    text = f"Wipe all devices of {name} and start them again? All that was typed on them is lost."
    return text, "Reset: the devices are being wiped, and start again."


def _notes(word: str, pod: Pod, now_unix: int) -> dict[str, str | None]:
    """Return the annotations that ask for it; a lab that was stopped starts again by a reset."""
    if word == names.HAND_IN:
        return {names.ANNOTATION_DESIRED_STATE: str(State.COLLECTING)}
    stopped = inputs_of(pod.metadata).desired is State.STOPPED
    return {names.ANNOTATION_RESET: iso(now_unix), **({names.ANNOTATION_DESIRED_STATE: None} if stopped else {})}


async def _agrees(question: str, word: str, pod: Pod, command: RemoteCommand) -> bool:
    """Return whether the person at the terminal types y or yes.

    Raises:
        InputError: `NotConfirmed`: there is nobody to ask.
        ConnectionLost: The person left.
    """
    if not (command.tty and command.stdin):
        ways = f"`kubectl exec -it {pod.metadata.name} -c {names.LAB_CONTAINER} -- {word}` asks"
        raise InputError(
            ConsoleReason.NOT_CONFIRMED, f"{question} Nobody was there to confirm that: add --yes, or {ways}"
        )
    await command.write(f"{question} [y/N]: ".encode())
    try:
        async with asyncio.timeout(_ANSWER_S):
            return (await _line(command)).strip().lower() in _YES
    except TimeoutError:
        return False
    finally:
        await command.write(b"\r\n")


async def _line(command: RemoteCommand) -> str:
    """Read what is typed up to a line's end, and show it: the terminal itself does not; "" if the person leaves."""
    typed = ""
    while data := await command.read():
        if any(key in data for key in _LEAVING):
            return ""
        for key in data.decode(errors="replace"):
            if key in "\r\n":
                return typed
            if key in _RUBOUT:
                await command.write(b"\b \b" if typed else b"")
                typed = typed[:-1]
            elif key.isprintable() and len(typed) < _ANSWER_CHARS_MAX:
                await command.write(key.encode())
                typed += key
    return ""


async def _say(command: RemoteCommand, text: str, code: int) -> Exit:
    end = "\r\n" if command.tty else "\n"
    await command.write(f"{text}{end}".encode())
    return Exit(code, text if code else "")


def _nothing(text: str) -> InputError:
    return InputError(ConsoleReason.NOTHING_TO_DO, text)
