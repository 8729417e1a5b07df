"""What a login such as `alice+r1`, and the command after it, ask for; and the sentences of refusals.

    alice           the devices of alice's lab, and how to say one
    alice+r1        the console of r1
    alice+LAB+r1    the same, where LAB is the namespace of the class, or the lablet's name

A name may have a `+` itself, as addresses of mail do, so that a login is read only once it is known whose link it is.
"""

import shlex
from collections.abc import Collection, Sequence
from typing import Final

from vkprovider.lablet import names
from vkprovider.portal.web.consoles.frames import Mode

_BETWEEN: Final = "+"
WATCH: Final = "--watch"
NO_FILES: Final = (
    "No files are copied here, for a console carries none: the page of your lab has the configurations, and a port of "
    "the device takes files."
)
NO_COMMAND: Final = (
    f"No commands are run here: leave it out, or say {names.CONSOLE}, {names.CONSOLE} {WATCH}, or {names.CONSOLE} "
    f"{names.TAKE_OVER}."
)
NO_FORWARDING: Final = "Nothing is forwarded here, neither ports nor agents nor screens: this is a console alone."
NO_BREAK: Final = "A break does not get through: the consoles of CML have none."
TOO_MANY: Final = "Too many connections from here at once: try again in a few seconds."
SMALL_PACKETS: Final = "This client takes too little at once for a console."
TRIED_TOO_OFTEN: Final = "Too many logins have failed: try again in a few seconds."
NOT_YET: Final = "The lab cannot be opened at the moment: it has ended, or it is not yours any more. See its page."


def is_login_of(login: str, learner: str) -> bool:
    """Return whether a login names a learner."""
    return bool(learner) and (login == learner or login.startswith(learner + _BETWEEN))


def device_in(login: str, learner: str, labs: Collection[str], devices: Sequence[str]) -> str:
    """Return the device that a login names; "" if it names none.

    Args:
        login: One of the learner (`is_login_of`).
        learner: Whose lab it is.
        labs: By which names the lab is known.
        devices: The labels of its devices; they count in letters of any size.
    """
    rest = login[len(learner) + 1 :]
    if rest and (found := _among(rest, devices)):
        return found
    lab, _, device = rest.partition(_BETWEEN)
    if lab in labs:
        rest = device
    return _among(rest, devices) or rest


def _among(name: str, devices: Sequence[str]) -> str:
    if name in devices:
        return name
    alike = [each for each in devices if each.casefold() == name.casefold()]
    return alike[0] if len(alike) == 1 else ""


def mode_of(command: str) -> Mode | None:
    """Return how a command opens the console; None if it is another command. "" is none, as for a shell."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    match words:
        case [] | [names.CONSOLE]:
            return Mode.TYPE
        case [names.CONSOLE, names.TAKE_OVER]:
            return Mode.TAKE_OVER
        case [names.CONSOLE, option] if option == WATCH:
            return Mode.WATCH
        case _:
            return None


def is_copy(command: str) -> bool:
    """Return whether a command is that of a program which copies files."""
    return command.split(" ", 1)[0].rsplit("/", 1)[-1] in {"scp", "rsync", "sftp-server"}


def devices_shown(learner: str, devices: Sequence[tuple[str, str]], unknown: str = "") -> str:
    """Return the devices of a lab, and how to say one.

    Args:
        learner: Whose lab it is.
        devices: Those with a console: label, and state in words.
        unknown: A device that was asked for, and is none of them; "" if none was.
    """
    if not devices:
        return "The lab has no device with a console yet: see its page."
    width = max(len(label) for label, _ in devices)
    first = f"{unknown} is no device of this lab with a console." if unknown else "Say which device you want."
    lines = (f"  {label:{width}}  {state}".rstrip() for label, state in devices)
    return "\n".join((first, *lines, f"For example: ssh {shlex.quote(learner + _BETWEEN + devices[0][0])}@…"))


def watching(sentence: str, login: str) -> str:
    """Return what somebody reads at whose console another person types."""
    return f"{sentence} Take over: ssh -t {shlex.quote(login)}@… {names.CONSOLE} {names.TAKE_OVER}"
