"""What a reason is: a word, its explanation, and the traits that decisions depend on."""

from enum import Flag, ReprEnum, auto
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
    """

    DEFERRABLE = auto()
    ASKED_FOR = auto()
    PASSING = auto()
    LASTING = auto()
    FOREIGN = auto()
    SILENCE = auto()
    ANNOUNCED = auto()


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
