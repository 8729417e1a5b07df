"""Files made from the code: `python -m tools.generate` writes them, `--check` compares them.

They stand in the repository so that a reader finds them and a reviewer sees how they change.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import annotated_types
from pydantic import AliasChoices, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from tools import commands, crdpage, httppage, monitoring, policies, recording, stale, tokens
from tools.markdown import NOTE, anchor, table
from vkprovider.agent.settings import AgentProcessSettings
from vkprovider.cli import crds
from vkprovider.doctor.reasons import DOCTOR
from vkprovider.lablet.reasons import (
    CONDITIONS,
    DEFINITIONS,
    PROGRESS,
    TROUBLE,
    WORKERS,
    ConsoleReason,
    EnvironmentReason,
    Happened,
    KeptReason,
    conditions,
)
from vkprovider.lablet.reasons.happened import ExposureReason
from vkprovider.labs.settings.cluster import Settings
from vkprovider.mux.pure.muxnames import MuxReason
from vkprovider.mux.relay.process import CONFIG
from vkprovider.mux.settings import MuxProcessSettings, RelayProcessSettings
from vkprovider.platform.reasons import Explanation, Reason, StartReason, by_word
from vkprovider.platform.settings import Group
from vkprovider.portal.pure.portalnames import UserLabReason
from vkprovider.portal.settings import PortalProcessSettings

ROOT: Final = Path(__file__).parents[1]
"""The top folder of the checkout."""

UNITS: Final = {"_s": "seconds", "qps": "requests per second", "_bytes_max": "bytes"}
"""Suffix of a field's name: its unit."""

WHY: Final = """\
# Why is my pod Pending, or not Ready?

Ask the Pod. The last lines of `kubectl describe pod POD` are its Events; above them stand its conditions and, per
container, the reason why it waits. `kubectl get pods` shows that reason as STATUS.

    kubectl describe pod POD
    kubectl get cmlw,ldef            # workers and definitions: READY, and the reason
    vkprovider doctor                # everything that is wrong, one line each, with its remedy

| what you see | where to look |
|---|---|
| no Pod at all | `kubectl describe` of the ReplicaSet, Job or StatefulSet; [no Pod is made](#{admission}) |
| Pending, NODE is `<none>` | Event FailedScheduling; [the Pod has no Node](#{scheduler}) |
| Pending with a NODE | the waiting reason: [on its way](#{progress}) or [in trouble](#{trouble}) |
| Running, but READY 0/1, or condition Ready is False | the same two, and [the worker](#{workers}) |
| Terminating for long | its worker must answer first, `vkprovider doctor` names it: [the worker](#{workers}) |
| NotReady of a Node, READY False of a CMLWorker | [the worker](#{workers}) |
| READY False of a LabletDefinition | [the definition](#{definitions}) |

Below is every reason, Event and condition: what it means and what to do about it. The message beside it has the
particulars. `vkprovider` continues by itself as soon as the cause is gone; nothing has to be restarted.
"""


def files() -> dict[Path, str]:
    """Render every generated file: path below the checkout to text."""
    pages = {Path("manifests/crds", name): text for name, text in crds.files().items()}
    pages[Path("docs/reference/settings.md")] = settings_page()
    pages[Path("docs/reference/crds.md")] = crdpage.crds_page()
    pages[Path("docs/reference/files.md")] = crdpage.files_page()
    pages[Path("docs/reference/kubectl-lablet.md")] = commands.page()
    pages[httppage.PATH] = httppage.page()
    pages[tokens.PATH] = tokens.page()
    pages[Path("docs/why.md")] = why_page()
    pages |= {each.path: recording.picture(each) for each in (*recording.RECORDINGS, *recording.TYPED)}
    pages[Path("manifests/components/relay/haproxy.cfg")] = CONFIG
    pages |= monitoring.files() | policies.files()
    return pages


def settings_page() -> str:
    """Describe the environment variables."""
    parts = [
        NOTE.format(source="the settings of each program") + "# Settings\n\n"
        "`vkprovider run`, `agent`, `mux`, `portal` and `relay` take all settings from the environment. An empty\n"
        "variable counts as unset, a wrong one ends the program with a message that names it. Secrets are never\n"
        "logged.\n"
    ]
    for group in groups():
        rows = [("Variable", "Default", "Unit", "Allowed", "What it is")]
        for name, field in variables(group).items():
            unit = next((unit for suffix, unit in UNITS.items() if name.endswith(suffix)), "")
            allowed = ", ".join(_limits(field))
            rows.append((_names(field), _default(field), unit, allowed, str(field.description)))
        parts.append(f"\n## {str(group.__doc__).rstrip('.')}\n\n{table(rows)}")
    return "".join(parts)


def groups() -> list[type[Group]]:
    """Return the classes of all groups of settings, those of a program alone at the end."""
    programs = (Settings, AgentProcessSettings, MuxProcessSettings, PortalProcessSettings, RelayProcessSettings)
    fields = {name: field for program in programs for name, field in program.model_fields.items()}
    return [field.annotation for field in fields.values() if isinstance(field.annotation, type)]


REASONS: Final[Mapping[str, Mapping[str, Reason | Explanation]]] = {
    "A Pod on its way (waiting reason)": PROGRESS,
    "A Pod in trouble (waiting reason, Warning Event)": TROUBLE,
    "What happened to a Pod (Event, condition)": by_word(Happened),
    "Environment variables of a Pod (Warning Event)": by_word(EnvironmentReason),
    "Conditions of a Pod, Node or definition": CONDITIONS,
    "CMLWorker and Node (condition Ready, Event)": WORKERS,
    "LabletDefinition (condition Ready, Event)": DEFINITIONS,
    "`kubectl attach`, `exec`, `logs`, `port-forward` (refusal)": by_word(ConsoleReason),
    "Mux and channel Services (Event)": by_word(MuxReason, ExposureReason),
    "User labs (Namespace, annotations `ending` and `operation`)": by_word(UserLabReason),
    "What learners have left (log)": by_word(KeptReason),
    "Start of the provider (exit)": by_word(StartReason),
    "Only `vkprovider doctor`": DOCTOR,
}
"""The reasons of all programs, by their headings in docs/why.md."""


def variables(group: type[Group]) -> dict[str, FieldInfo]:
    """Return the fields of a group that are environment variables, by name."""
    return {name: field for name, field in group.model_fields.items() if field.validation_alias is not None}


def why_page() -> str:
    """Describe what conditions, waiting reasons and Events say, those of stock Kubernetes first."""
    tables = {**conditions.TABLES, **REASONS}
    anchors = {
        "admission": conditions.ADMISSION,
        "scheduler": conditions.SCHEDULER,
        "progress": PROGRESS,
        "trouble": TROUBLE,
        "workers": WORKERS,
        "definitions": DEFINITIONS,
    }
    headings = {
        name: anchor(heading)
        for name, wanted in anchors.items()
        for heading, found in tables.items()
        if found is wanted
    }
    parts = [NOTE.format(source="vkprovider/lablet/reasons"), WHY.format(**headings)]
    for heading, described in tables.items():
        rows = [("Reason", "What it means", "What to do"), *_reason_rows(described)]
        parts.append(f"\n## {heading}\n\n{table(rows)}")
    return "".join(parts)


def _reason_rows(described: Mapping[str, Reason | Explanation]) -> Iterator[tuple[str, str, str]]:
    for name, reason in described.items():
        yield f"`{name}`", reason.means, reason.remedy or "Nothing."


def _names(field: FieldInfo) -> str:
    alias = field.validation_alias
    names = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return ", ".join(f"`{name}`" for name in names)


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return "generated"
    value = field.default
    if value is PydanticUndefined or value is None:
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _limits(field: FieldInfo) -> Iterator[str]:
    """Describe in words what a field accepts."""
    if get_origin(field.annotation) is Literal:
        yield ", ".join(f"`{choice}`" for choice in get_args(field.annotation))
    elif field.annotation is bool:
        yield "`true`, `false`"
    elif SecretStr in get_args(field.annotation):
        yield "secret"
    bounds: dict[type, tuple[str, str]] = {
        annotated_types.Ge: ("ge", "≥"),
        annotated_types.Gt: ("gt", ">"),
        annotated_types.Le: ("le", "≤"),
        annotated_types.Lt: ("lt", "<"),
    }
    for limit in field.metadata:
        if type(limit) in bounds:
            attribute, sign = bounds[type(limit)]
            value: Any = getattr(limit, attribute)
            yield f"{sign} {value}"


def main(arguments: list[str]) -> int:
    """Write the files, or with `--check` compare them; return the exit code."""
    return stale.run("tools.generate", arguments, ROOT, files)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
