"""Reasons for which `kubectl attach`, `exec`, `logs` and `port-forward` refuse."""

from vkprovider.platform.reasons import Reasons


class ConsoleReason(Reasons):
    """What is wrong with a session that a user asks for."""

    NOT_A_DEVICE = (
        "NotADevice",
        "The container is the lablet as a whole, which has no console.",
        "Name a device's container with `-c`; the message lists them.",
    )
    NO_LAB = ("NoLab", "The lablet has no lab (yet).", "Wait until it runs.")
    DEVICE_OFF = ("DeviceOff", "The device does not run.", "Wait until it runs; `kubectl describe pod` says more.")
    NO_CONSOLE = (
        "NoConsole",
        "CML has no console for the device; external connectors and unmanaged switches never have one.",
        "Use another device.",
    )
    CONSOLE_IN_USE = (
        "ConsoleInUse",
        "Another session types at the console of the device; any number may watch.",
        "Attach without `-i`, or take over until you leave: `kubectl lablet console POD DEVICE --take-over`.",
    )
    NO_CONFIGURATION = (
        "NoConfiguration",
        "CML extracts no configuration of the device: its kind has none, it is empty, or the device is hidden.",
        "Use another device; the definition's author sees hidden ones in what `collect` keeps.",
    )
    UNSUPPORTED_DEVICE = (
        "UnsupportedDevice",
        "The prompt of this kind of device is not known, so that nothing says when a command has ended.",
        "Use `kubectl lablet console`, or name the prompt in the file of VKPROVIDER_CONSOLE_PROMPTS.",
    )
    NO_INPUT = (
        "NoInput",
        "`kubectl exec` types one command at a console and passes no input on to it.",
        "Use `kubectl attach -i POD -c DEVICE`, or `kubectl exec -i POD -c DEVICE -- console`; else leave out `-i`.",
    )
    NO_TERMINAL = (
        "NoTerminal",
        "A shell at a device is its console, which needs a person.",
        "`kubectl exec -it POD -c DEVICE -- console`.",
    )
    NO_FILES = (
        "NoFiles",
        "A console carries text for people, so that `kubectl cp` and programs like it cannot copy files.",
        "Tag the device's SSH port (`pat:…:22`), `kubectl port-forward POD 2222:22`, and `scp -P 2222`.",
    )
    COMMAND_INVALID = ("CommandInvalid", "The command cannot be typed at a console.", "Correct what the message says.")
    UNKNOWN_PORT = (
        "UnknownPort",
        "The lablet has no such port, or CML does not open it.",
        "Use one of those in the message; `kubectl lablet ports POD`.",
    )
    AMBIGUOUS_PORT = (
        "AmbiguousPort",
        "Several devices have this port inside.",
        "Use the allocated port of one of them, or `kubectl lablet forward POD NAME`.",
    )
    NO_PREVIOUS_LOG = (
        "NoPreviousLog",
        "There is no log of a run before the last restart, or CML forgot it when the device was wiped.",
        "Leave out `--previous`.",
    )
    TOO_MANY_SESSIONS = ("TooManySessions", "So many sessions are open on the worker already.", "End some.")
