"""What a reason is: a word, its explanation, and the traits that decisions depend on; the reasons of a start.

A reason stands in a container's waiting state, a condition or an Event, next to a message with the particulars. Each
program has its own, and `docs/why.md` is made of all. No module writes a reason as a string: a test counts.
"""

from enum import Flag, ReprEnum, auto
from functools import cache
from typing import Final, NamedTuple, Self


class Trait(Flag):
    """What a reason implies beyond its text.

    Attributes:
        DEFERRABLE: A status with this reason may be written late, or skipped.
        ASKED_FOR: The lab is off, or goes off, because that was requested: a device that is off is not a fault.
        PASSING: It goes away by itself; no Warning Event is emitted for it.
        LASTING: It applies to a worker that is Ready all the same.
        FOREIGN: The object belongs to another installation and is not touched.
        SILENCE: The system does not answer; failures in a row for this reason emit one Warning Event.
        ANNOUNCED: The lablet's open consoles show the Event as well.
        PREFIX: Every word that begins with its word is this reason: `OutOfcpu`, of `OutOf`.
    """

    DEFERRABLE = auto()
    ASKED_FOR = auto()
    PASSING = auto()
    LASTING = auto()
    FOREIGN = auto()
    SILENCE = auto()
    ANNOUNCED = auto()
    PREFIX = auto()


_NO_TRAITS: Final = Trait(0)


class Explanation(NamedTuple):
    """The row of a word in docs/why.md.

    Attributes:
        means: What is the case.
        remedy: What to do about it; empty if nothing has to be done.
    """

    means: str
    remedy: str = ""


class Reason(str):
    """A word in a container's waiting state, a condition or an Event, with its explanation.

    No decision compares words: it reads the attributes. Values are members of `Reasons`: ours, or `ForeignReason`.

    Attributes:
        means: What is the case.
        remedy: What to do about it; empty if nothing has to be done.
        traits: What it implies beyond its text.
    """

    __slots__ = ("means", "remedy", "traits")

    means: str
    remedy: str
    traits: Trait

    @property
    def deferrable(self) -> bool:
        """Whether a status with this reason may be written late, or skipped."""
        return Trait.DEFERRABLE in self.traits

    @property
    def asked_for(self) -> bool:
        """Whether devices are off because that was requested."""
        return Trait.ASKED_FOR in self.traits

    @property
    def passing(self) -> bool:
        """Whether it goes away by itself, so that no Warning Event is emitted for it."""
        return Trait.PASSING in self.traits

    @property
    def lasting(self) -> bool:
        """Whether it applies to a worker that is Ready all the same."""
        return Trait.LASTING in self.traits

    @property
    def foreign(self) -> bool:
        """Whether the object belongs to another installation and is not touched."""
        return Trait.FOREIGN in self.traits

    @property
    def silence(self) -> bool:
        """Whether the system does not answer, so that failures in a row emit one Warning Event."""
        return Trait.SILENCE in self.traits

    @property
    def announced(self) -> bool:
        """Whether the lablet's open consoles show the Event as well."""
        return Trait.ANNOUNCED in self.traits


class Reasons(Reason, ReprEnum):
    """An enum of reasons, one for each subject. A member equals its word, and is encoded as it."""

    _value_: str

    def __new__(cls, word: str, means: str, remedy: str = "", traits: Trait = _NO_TRAITS) -> Self:
        """Make a member of `word`."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.means, member.remedy, member.traits = means, remedy, traits
        return member

    def worded(self, word: str) -> Self:
        """Return this reason in a longer word: `OutOfcpu` for `OutOf`."""
        member = str.__new__(type(self), word)
        member._name_, member._value_ = self._name_, word
        member.means, member.remedy, member.traits = self.means, self.remedy, self.traits
        return member


class ForeignReason(Reasons):
    """Words without explanation and traits: another program's, those of a later version of this one, and none at all.

    `reason_of` makes the words.
    """

    NONE = ("", "No word, or one that this program does not explain.")


NO_REASON: Final = ForeignReason.NONE
"""The reason of a condition that needs none, and of an event that did not happen."""


class StartReason(Reasons):
    """Errors that end `vkprovider run` at once."""

    SETTING_INVALID = (
        "SettingInvalid",
        "A setting is missing or wrong, a file that it names is, or its port is taken.",
        "Do what the message says; see settings.md.",
    )
    KUBECONFIG_MISSING = ("KubeconfigMissing", "There is no kubeconfig at that path.", "Set KUBECONFIG.")
    KUBECONFIG_INVALID = ("KubeconfigInvalid", "The kubeconfig cannot be used.", "Correct what the message names.")
    KUBECONFIG_UNSUPPORTED = (
        "KubeconfigUnsupported",
        "The kubeconfig uses a feature that vkprovider does not support.",
        "Use another user or context.",
    )
    SERVICE_ACCOUNT_INVALID = (
        "ServiceAccountInvalid",
        "The Pod's ServiceAccount files cannot be read.",
        "Mount the ServiceAccount.",
    )
    TOKEN_INVALID = (
        "TokenInvalid",
        "The token has characters that an HTTP header cannot carry.",
        "Write the token again.",
    )
    TOKEN_MISSING = (
        "TokenMissing",
        "The token file cannot be read, or is empty.",
        "Correct its path, its rights or its content.",
    )


def by_word(*enums: type[Reasons]) -> dict[str, Reason]:
    """Return the reasons of enums by their words; one that stands in several has the same traits in each of them."""
    return {reason.value: reason for enum in enums for reason in enum}


@cache
def _all() -> tuple[dict[str, Reason], tuple[Reasons, ...]]:
    """Return all reasons by their words, and those whose words begin other words."""
    enums = Reasons.__subclasses__()
    return by_word(*enums), tuple(reason for enum in enums for reason in enum if Trait.PREFIX in reason.traits)


def reason_of(word: str) -> Reason:
    """Return the reason of a word that was read: from an object, a stored row, or another program's answer.

    Returns:
        A member of an enum; `NO_REASON` for "". A word of a later version, or of another program, is kept: it is
        without explanation and traits.
    """
    known, prefixes = _all()
    if (found := known.get(word)) is not None:
        return found
    return next((each for each in prefixes if word.startswith(each)), NO_REASON).worded(word)


def decode(type_: type, value: str) -> Reason:
    """Decode a stored reason: the `dec_hook` of a decoder of msgspec for a type with reasons.

    A row of a later version stays readable: its words are kept, and explain nothing.

    Raises:
        NotImplementedError: The type is not `Reason`.
    """
    if type_ is not Reason:
        raise NotImplementedError(f"{type_} is not a reason")
    return reason_of(value)


class PortReason(Reasons):
    """Reasons for which outside ports are not given; those of a Pod that waits for them."""

    TOO_MANY_PORTS = (
        "TooManyPorts",
        "The topology's port tags need more outside ports than one lablet may have; none was allocated.",
        "Remove port tags from the topology, or raise PORTS_PER_INSTANCE_MAX.",
    )
    PORT_RANGE_FULL = (
        "PortRangeFull",
        "Fewer ports of the worker's range are free than the lablet needs; none was allocated.",
        "Wait until a lablet of this worker ends, or widen spec.portRange together with the range of PATty.",
    )
    PORT_CONFLICT = (
        "PortConflict",
        (
            "A port of the lablet's row is claimed by another one on the same worker; the row was not written. Or "
            "two labs on the worker have the port in their tags: the claims were lost, or two CMLWorkers are one CML "
            "controller."
        ),
        (
            "Compare the port mappings of both in NAME-port-allocations, and delete the Pod that should not "
            "have the port."
        ),
    )
