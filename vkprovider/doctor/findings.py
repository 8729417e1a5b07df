"""Findings: what a check reports, and the report made of them."""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from vkprovider.doctor.reasons import DoctorReason
from vkprovider.lablet.reasons import Trouble
from vkprovider.lablet.reasons.conditions import ADMISSION
from vkprovider.platform.errors import OutsideError
from vkprovider.platform.messages import count
from vkprovider.platform.reasons import Reason

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
        reason: One CamelCase word: that of the object's own condition or waiting state, if it has one.
        message: What is wrong.
        remedy: What to do about it.
    """

    level: Level
    object: str
    reason: Reason
    message: str
    remedy: str = ""

    @property
    def line(self) -> str:
        """The finding as one line of text."""
        mark = "" if self.level is Level.FAULT else f"({self.level}) "
        text = f"{mark}{self.object}: {self.reason}: {self.message}"
        known = self.remedy.rstrip(".").lower() in self.message.lower()
        return " ".join(text.split() if known else f"{text.rstrip('.')}. → {self.remedy}".split())


class DoctorReport(msgspec.Struct, frozen=True):
    """The whole report, as `-o json` prints it.

    Attributes:
        context: The kubeconfig's context, or `in-cluster`.
        kubernetes: The API server's version.
        vkprovider: This program's version, with which the cluster's is compared.
        cml: CML's version by CMLWorker; empty if unknown.
    """

    context: str
    server: str
    kubernetes: str = ""
    vkprovider: str = ""
    cml: dict[str, str] = {}
    findings: tuple[Finding, ...] = ()

    @property
    def exit_code(self) -> int:
        """0: healthy; 1: faults; 2: no faults, but something could not be checked."""
        levels = {finding.level for finding in self.findings}
        return FAULTY if Level.FAULT in levels else UNCHECKED if Level.UNCHECKED in levels else HEALTHY


def fault(about: str, reason: Reason, message: str, remedy: str) -> Finding:
    """Return a finding that needs action."""
    return Finding(Level.FAULT, about, reason, message, named(remedy, about))


def named(remedy: str, about: str) -> str:
    """Return a remedy with the name of its object where reference pages have `NAME` or `POD`.

    >>> named("`kubectl lablet reset POD`", "Pod/team-a/mylab-0")
    '`kubectl lablet reset mylab-0 -n team-a`'
    """
    kind, _, where = about.partition("/")
    namespace, _, name = where.rpartition("/")
    if not name:
        return remedy
    command = f"{name} -n {namespace}" if namespace else name
    return re.sub(r"\bPOD\b" if kind == "Pod" else r"\bNAME\b", lambda _: command, remedy)


def note(about: str, reason: Reason, message: str, remedy: str = "") -> Finding:
    """Return a finding for information."""
    return Finding(Level.NOTE, about, reason, message, remedy)


def unchecked(about: str, reason: Reason, message: str, remedy: str = "") -> Finding:
    """Return a finding about what could not be checked."""
    return Finding(Level.UNCHECKED, about, reason, message, remedy)


def unanswered(context: str, server: str, error: OutsideError) -> DoctorReport:
    """Return the report about a cluster whose API server cannot be asked."""
    text = f"the API server cannot be asked: {error.message}"
    return DoctorReport(context, server, findings=(unchecked("Cluster", DoctorReason.API_UNAVAILABLE, text),))


def remedy_of(table: Mapping[str, Reason], reason: str, default: str = "") -> str:
    """Return the remedy for a reason; `OutOfcpu` is listed as `OutOf`."""
    known = table.get(reason) or (table.get(Trouble.OUT_OF) if reason.startswith(Trouble.OUT_OF) else None)
    return known.remedy if known is not None and known.remedy else default


def once(findings: Iterable[Finding]) -> list[Finding]:
    """Return the first finding of each reason about an object: one fault may show in two ways."""
    kept: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        kept.setdefault((finding.object, finding.reason), finding)
    return list(kept.values())


def json_of(report: DoctorReport) -> str:
    """Format a report as one JSON object."""
    text = {**msgspec.to_builtins(report), "exitCode": report.exit_code}
    return msgspec.json.format(msgspec.json.encode(text), indent=2).decode()


def text_of(report: DoctorReport) -> str:
    """Format a report as lines: where it was made, one for each finding, and how many there are."""
    where = f"context {report.context}"
    where += f", API server {report.server}" if report.server else ""
    where += f", Kubernetes {report.kubernetes}" if report.kubernetes else ""
    where += f", vkprovider {report.vkprovider}" if report.vkprovider else ""
    versions = sorted({version.partition("+")[0] for version in report.cml.values() if version})
    where += f", CML {', '.join(versions)}" if versions else ""
    summary = _summary(report.findings) if report.kubernetes else "nothing was checked"
    return "\n".join([where, *(finding.line for finding in report.findings), summary])


def _summary(findings: tuple[Finding, ...]) -> str:
    counts = {level: sum(finding.level is level for finding in findings) for level in Level}
    words = {Level.FAULT: ("fault", ""), Level.UNCHECKED: ("not checked", "not checked"), Level.NOTE: ("note", "")}
    parts = [count(number, *words[level]) for level, number in counts.items() if number]
    if (unmade := counts[Level.UNCHECKED]) and not counts[Level.FAULT]:
        notes = [count(counts[Level.NOTE], *words[Level.NOTE])] if counts[Level.NOTE] else []
        return ", ".join([f"{count(unmade, 'check')} could not be made; the others found no faults", *notes])
    return ", ".join(parts) if counts[Level.FAULT] else ", ".join(["no faults", *parts])


SKEW_S: Final = 5.0
"""Clocks that differ by less do not matter."""


def check_clock(about: str, whose: str, ahead_s: float) -> list[Finding]:
    """Report a clock that is `ahead_s` seconds ahead of this machine's, if that matters."""
    if abs(ahead_s) < SKEW_S:
        return []
    text = f"the clocks of {whose} and of this machine differ by {abs(ahead_s):.0f} s"
    return [note(about, DoctorReason.CLOCK_SKEW, text, "Run a time service on both.")]


_ELSE: Final = "Do what the message says, or see docs/why.md."


def admission_remedy(message: str) -> str:
    """Return the remedy for the API server's refusal of a Pod."""
    return next((known.remedy for text, known in ADMISSION.items() if text in message), _ELSE)
