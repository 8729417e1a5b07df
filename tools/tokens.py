"""The page of tokens: what each ServiceAccount that ships may do, made of RBAC and of the policies that confine it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from tools.markdown import NOTE, table
from vkprovider.classroom.access import role_for
from vkprovider.classroom.deployments import Deployment
from vkprovider.classroom.pods import LabletPod, LabletSpec
from vkprovider.classroom.schedules import BootSource, BootTime, Schedule, objects
from vkprovider.classroom.timetable import Timetable, Window
from vkprovider.lablet import names
from vkprovider.labs.controllers.console.devices import OF_WHOLE
from vkprovider.platform.objects import Metadata

PATH: Final = Path("docs/reference/tokens.md")
_MANIFESTS: Final = Path(__file__).parents[1] / "manifests"
_RIGHTS: Final = (
    "base/rbac.yaml",
    "base/roles.yaml",
    "components/mux/rbac.yaml",
    "components/portal/rbac.yaml",
    "components/workbench/rbac.yaml",
)
_RELAY: Final = "components/relay/rbac.yaml"
_POLICIES: Final = (
    "base/confine.yaml",
    "components/mux/confine.yaml",
    "components/portal/confine.yaml",
    "components/workbench/confine.yaml",
)
_OPERATIONS: Final = {"create": "CREATE", "update": "UPDATE", "patch": "UPDATE", "delete": "DELETE"}
_ASKS: Final = frozenset({"tokenreviews", "subjectaccessreviews"})
"""Created, and nothing is written by it."""
_HEAD: Final = """\
# What a token may do

Each ServiceAccount that an installation has, with all that its token may do: who steals it may do this, and no more.
The table is made of the shipped roles and of the policies that confine the account; a test compares it with what a real
API server says, and tries what a policy refuses. [security.md](../security.md#what-a-stolen-token-may-do) says what
follows from the widest rows.

*Where* is a namespace, all of the cluster, or wherever an admin binds a role. *Kept to* names the policy that limits
the writes of a row; without one they are on any object. Nothing limits reading but the role.
"""
_LATER: Final = """
## Tokens of a class

These rights are given while a class runs, on one object each: to a learner and the guests with the lablet, also by a
link, and to the account of a schedule with its pool. [security.md](../security.md#commands-and-who-is-refused) says of
each command who else may, and whom it is refused to.

"""
_BELOW: Final = """
## What the policies say

Each message is what the API server answers who has the token.
"""


class Row(NamedTuple):
    """What a token may do with one kind of object, in one place.

    Attributes:
        account: The ServiceAccount, as `namespace/name`.
        role: The ClusterRole, where an admin binds it; "" if the manifests do.
        where: The namespace; "" for all of the cluster.
        group: Of the API.
        resource: With its subresource: `nodes/status`.
        name: Of the only object; "" for any.
        verbs: Those of the rule, in its order.
        policies: The policies that limit the writes.
        why: The comment of the rule.
    """

    account: str
    role: str
    where: str
    group: str
    resource: str
    name: str
    verbs: tuple[str, ...]
    policies: tuple[str, ...]
    why: str

    @property
    def writes(self) -> tuple[str, ...]:
        """The verbs that change something."""
        return tuple(verb for verb in self.verbs if verb in _OPERATIONS and self.resource not in _ASKS)


def rows() -> list[Row]:
    """Return the table: what the manifests bind, and then what they offer for an admin to bind."""
    documents = [each for file in (*_RIGHTS, _RELAY) for each in _documents(file)]
    roles = {
        (body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]): (body, whys)
        for body, whys in documents
        if body["kind"] in {"Role", "ClusterRole"}
    }
    bindings = [body for body, _ in documents if body["kind"] in {"RoleBinding", "ClusterRoleBinding"}]
    found: list[Row] = []
    for binding in bindings:
        ref, where = binding["roleRef"], binding["metadata"].get("namespace", "")
        body, whys = roles[ref["kind"], where if ref["kind"] == "Role" else "", ref["name"]]
        for subject in binding["subjects"]:
            found += _of_role(body, whys, f"{subject['namespace']}/{subject['name']}", where)
    for role, account in _offered(documents):
        body, whys = roles["ClusterRole", "", role]
        found += _of_role(body, whys, account, "", role)
    return found


def page() -> str:
    """Render the page."""
    found, parts = rows(), [NOTE.format(source="manifests/base/rbac.yaml, manifests/components/*/rbac.yaml"), _HEAD]
    for account in dict.fromkeys(row.account for row in found):
        its = [_cells(row) for row in found if row.account == account]
        parts += [f"\n## {account}\n\n", table([_COLUMNS, *its])]
    parts += [_LATER, table([("Token", *_COLUMNS[1:3], _COLUMNS[4]), *_of_class()]), _BELOW]
    for name, spec in policies():
        said = [" ".join(text.split()) for text in map(_message, spec["validations"])]
        parts.append(f"\n`{name}`\n\n" + "".join(f"- {text}\n" for text in said))
    return "".join(parts)


def policies() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the spec of each policy that confines an account."""
    for file in _POLICIES:
        for body, _ in _documents(file):
            if body["kind"] == "ValidatingAdmissionPolicy":
                yield body["metadata"]["name"], body["spec"]


_COLUMNS: Final = ("Where", "Object", "Verbs", "Kept to", "What for")


def _of_class() -> Iterator[tuple[str, ...]]:
    """Yield what whose token may do while a class runs, and what for."""
    spoken = ", ".join(f"`{word}`" for word in sorted(OF_WHOLE | {names.CONSOLE}))
    reasons = (
        "How the lablet stands, and its story.",
        f"`kubectl attach`, and what `kubectl exec` serves: commands of a device, {spoken}.",
    )
    lablet = role_for(LabletPod(Metadata("POD", "CLASS"), LabletSpec([])))
    learner = f"who has the lablet POD, its guests, and the accounts `{names.LINK_PREFIX}…` of their links"
    for rule, why in zip(lablet["rules"], reasons, strict=True):
        yield learner, *_ruled(rule), why
    meta = {"name": "POOL", "namespace": "CLASS"}
    pool = msgspec.convert({"metadata": meta, "spec": {"selector": {}, "template": {"spec": {}}}}, Deployment)
    times = Timetable("UTC", (0,), (Window(0, 1),), 0)
    schedule = Schedule("POOL", "", "POOL", times, BootTime(0, BootSource.GIVEN), "")
    [role] = [each for each in objects(schedule, pool) if each["kind"] == "Role"]
    for rule in role["rules"]:
        yield (
            f"`{names.schedule_account('POOL')}`",
            *_ruled(rule),
            "The size of the pool, at the times of its schedule.",
        )


def _ruled(rule: dict[str, Any]) -> tuple[str, str]:
    """Return the objects of a rule, and its verbs."""
    [group], [name] = rule["apiGroups"], rule["resourceNames"]
    kinds = ", ".join(f"`{kind}.{group}`" if group else f"`{kind}`" for kind in rule["resources"])
    return f"{kinds} {name}", ", ".join(rule["verbs"])


def _cells(row: Row) -> tuple[str, ...]:
    where = f"where an admin binds `{row.role}`" if row.role else f"`{row.where}`" if row.where else "cluster"
    kind = f"{row.resource}.{row.group}" if row.group else row.resource
    what = f"`{kind}`" + (f" {row.name}" if row.name else "")
    kept = ", ".join(f"`{name}`" for name in row.policies) or ("any" if row.writes else "")
    return where, what, ", ".join(row.verbs), kept, row.why


def _of_role(role: dict[str, Any], whys: list[str], account: str, where: str, offered: str = "") -> Iterator[Row]:
    for rule, why in zip(role["rules"], whys, strict=True):
        for group in rule.get("apiGroups", ()):
            for resource in rule["resources"]:
                for name in rule.get("resourceNames", [""]):
                    verbs = tuple(rule["verbs"])
                    kept = _kept(account, group, resource, verbs)
                    yield Row(account, offered, where, group, resource, name, verbs, kept, why)


def _kept(account: str, group: str, resource: str, verbs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the policies that look at all writes of some verbs."""
    operations = {_OPERATIONS[verb] for verb in verbs if verb in _OPERATIONS}
    if not operations or resource in _ASKS:
        return ()
    return tuple(
        name
        for name, spec in policies()
        if any(f":{account.rpartition('/')[2]}'" in each["expression"] for each in spec["matchConditions"])
        and all(any(_names(rule, group, resource, each) for rule in _rules(spec)) for each in operations)
    )


def _rules(spec: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spec["matchConstraints"]["resourceRules"]
    return found


def _names(rule: dict[str, Any], group: str, resource: str, operation: str) -> bool:
    kind, _, part = resource.partition("/")
    wanted = {resource, "*/*", f"{kind}/*" if part else kind}
    return (
        bool({group, "*"} & set(rule["apiGroups"]))
        and bool({operation, "*"} & set(rule["operations"]))
        and bool(wanted & set(rule["resources"]))
    )


def _message(validation: dict[str, Any]) -> str:
    """Return what a validation says; of one that is put together, its expression with an ellipsis for each value."""
    if "message" in validation:
        return str(validation["message"])
    return re.sub(r"' \+ [^']*(?: \+ '|$)", "…", str(validation["messageExpression"])).strip("'")


def _offered(documents: list[tuple[dict[str, Any], list[str]]]) -> Iterator[tuple[str, str]]:
    """Yield the ClusterRoles that an admin binds to an account of ours, as their comments say, with the account."""
    for body, _ in documents:
        name = body["metadata"]["name"]
        if body["kind"] != "ClusterRole":
            continue
        if name in {"vkprovider-parameter-reader", "vkprovider-topology-reader"}:
            yield name, "vkprovider-system/vkprovider"
        elif name in {"vkprovider-mux-store", "vkprovider-mux-endpoints"}:
            yield name, "vkprovider-system/vkprovider-mux"


def _documents(file: str) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield the documents of a file, each with the comment of each of its rules."""
    for text in re.split(r"^---$", (_MANIFESTS / file).read_text(encoding="utf-8"), flags=re.MULTILINE):
        body = yaml.safe_load(text)
        if body:
            yield body, _comments(text)


def _comments(text: str) -> list[str]:
    """Return the comment of each rule; one without belongs to that of the rule before, or to that of the role."""
    lines = text.splitlines()
    head = lines[: next((at for at, line in enumerate(lines) if line.startswith("api")), 0)]
    whole = " ".join(line[2:] for line in head if line.startswith("# ") and not line.startswith("#  "))
    found: list[str] = []
    block: list[str] = []
    for line in lines:
        if line.startswith("# "):
            block += [line[2:].strip()] if not line.startswith("#  ") else []  # no commands
        elif line.startswith(("- apiGroups", "- nonResourceURLs")):
            found.append(" ".join(block) or (found[-1] if found else whole))
            block = []
        else:
            block = []
    return found
