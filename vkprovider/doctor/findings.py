"""What a check finds."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from vkprovider.api.reasons import Reason

HEALTHY: Final = 0
FAULTY: Final = 1
UNCHECKED: Final = 2


class Level(StrEnum):
    """How much a finding matters."""

    FAULT = "fault"
    UNCHECKED = "unchecked"
    NOTE = "note"


class Finding(msgspec.Struct, frozen=True):
    """One line of the report.

    Attributes:
        object: Kind and name, as kubectl takes them: `CMLWorker/worker-1`, `Pod/default/a`.
        reason: One CamelCase word, that of the object's own condition or waiting state where it has one.
        message: What is the case.
        remedy: What to do about it.
    """

    level: Level
    object: str
    reason: str
    message: str
    remedy: str = ""

    @property
    def line(self) -> str:
        """The finding as people read it."""
        mark = "" if self.level is Level.FAULT else f"({self.level}) "
        text = f"{mark}{self.object}: {self.reason}: {self.message}"
        return " ".join(f"{text.rstrip('.')}. → {self.remedy}".split()) if self.remedy else " ".join(text.split())


class Report(msgspec.Struct, frozen=True):
    """The whole answer, as `-o json` shows it.

    Attributes:
        context: Of the kubeconfig, or `in-cluster`.
        kubernetes: The API server's version.
        vkprovider: This program's version; what it does not find equal in the cluster is a finding.
        cml: Version of CML by CMLWorker; empty if it is not known.
    """

    context: str
    server: str
    kubernetes: str = ""
    vkprovider: str = ""
    cml: dict[str, str] = {}
    findings: tuple[Finding, ...] = ()

    @property
    def exit_code(self) -> int:
        """0: healthy; 1: faults; 2: no fault was found, but not everything could be checked."""
        levels = {finding.level for finding in self.findings}
        return FAULTY if Level.FAULT in levels else UNCHECKED if Level.UNCHECKED in levels else HEALTHY


def fault(about: str, reason: str, message: str, remedy: str) -> Finding:
    """Make a finding that somebody has to do something about."""
    return Finding(Level.FAULT, about, reason, message, remedy)


def note(about: str, reason: str, message: str, remedy: str = "") -> Finding:
    """Make a finding that is worth knowing."""
    return Finding(Level.NOTE, about, reason, message, remedy)


def unchecked(about: str, reason: str, message: str, remedy: str = "") -> Finding:
    """Make a finding about what could not be checked."""
    return Finding(Level.UNCHECKED, about, reason, message, remedy)


def remedy_of(table: Mapping[str, Reason], reason: str, default: str = "") -> str:
    """Look up what to do about a reason; `OutOfcpu` is listed as `OutOf`."""
    known = table.get(reason) or (table.get("OutOf") if reason.startswith("OutOf") else None)
    return known.remedy if known is not None and known.remedy else default


def once(findings: Iterable[Finding]) -> list[Finding]:
    """Keep the first finding of each reason about an object: two ways to see a fault are one fault."""
    kept: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        kept.setdefault((finding.object, finding.reason), finding)
    return list(kept.values())
