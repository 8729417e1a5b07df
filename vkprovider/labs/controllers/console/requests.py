"""`exec -c lab -- hand-in` and `-- reset`: a learner asks for what an instructor writes on the Pod.

Who may open the consoles of a lablet may ask for these, and needs no right to change the Pod: the provider writes the
same annotation that `kubectl lablet collect` and `reset` write. It stands on the Pod, so that a request that was taken
survives every replica. Both cannot be undone, so both ask, or want to be told `--yes`.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from vkprovider.lablet import names
from vkprovider.lablet.inputs import inputs_of
from vkprovider.lablet.reasons import ConsoleReason
from vkprovider.lablet.standing import State, has_ended, learner_in
from vkprovider.labs.controllers.console.commands import ESCAPE
from vkprovider.labs.controllers.console.finding import FoundLablet, check
from vkprovider.labs.kubelet.spi import Exit, RemoteCommand
from vkprovider.platform.errors import Conflict, InputError, NotFound
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
    if options - {"--yes", "-y"}:
        raise InputError(ConsoleReason.COMMAND_INVALID, f"write `{word}` or `{word} --yes`")
    pod = _pod_of(place)
    question, done = _words(word, pod, place)
    if place.claim.closing_reason and word == names.HAND_IN:
        return await _say(command, done, 0)
    if not options and not await _agrees(question, word, pod, command):
        return await _say(command, "Nothing was done.", 1)
    meta = pod.metadata
    pods = ctx.api.pods.within(meta.namespace).metadata_only
    body = {"metadata": {"annotations": _notes(word, pod, ctx.now_unix)}}
    check(place.worker)
    try:
        await pods.patch_status(meta.name, body, uid=meta.uid, guard=place.worker.guard, lane=Lane.RESULT)
    except Conflict:
        raise NotFound(f"pod {meta.name} is another one now") from None
    return await _say(command, done, 0)


def _pod_of(place: FoundLablet) -> Pod:
    """Return the Pod of a lablet that lives.

    Raises:
        InputError: `NothingToDo`.
    """
    pod = place.lablet.pod
    if pod is None or has_ended(pod) or pod.metadata.deletion_timestamp is not None:
        raise _nothing(f"pod {place.claim.pod} has ended")
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
