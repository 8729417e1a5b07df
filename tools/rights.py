"""Rights used and rights granted: `python -m tools.rights AUDIT-LOG…` prints each right of the provider and its uses.

The rights are those of `manifests/base/rbac.yaml`: what the ServiceAccount is bound to, and the roles of the provider
that an admin binds where it is needed. The uses are the requests of replicas in audit logs of API servers (JSON
lines): those with the provider's ServiceAccount and the name of a replica in the user agent. A test, or a doctor, that
acts with that ServiceAccount has no such name. `make rights` makes the logs: it runs the cluster tests, with an audit
log of each of their sandboxes. The exit code is 1 if a right was granted and never used, or used without a grant
(another role gives it).
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec
import yaml

from vkprovider.doctor.rights import SHIPPED_NAMESPACE, CheckedRight, rights_in, rights_of
from vkprovider.platform import wellknown

RBAC: Final = Path(__file__).parents[1] / "manifests" / "base" / "rbac.yaml"
_ACCOUNTS: Final = f"system:serviceaccount:{SHIPPED_NAMESPACE}:"
USER: Final = f"{_ACCOUNTS}{wellknown.SERVICE_ACCOUNT}"
_REPLICA: Final = r"{program}/\S+ \(\S+\)"
"""The user agent of a replica; see `vkprovider.platform.kube.client.user_agent`."""
_FORBIDDEN: Final = 403


class _User(msgspec.Struct, frozen=True):
    username: str = ""


class _Object(msgspec.Struct, frozen=True, rename="camel"):
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    api_group: str = ""


class _Answer(msgspec.Struct, frozen=True):
    code: int = 0


class _Event(msgspec.Struct, frozen=True, rename="camel"):
    """A line of an audit log, as far as rights concern it."""

    verb: str = ""
    user: _User = _User()
    user_agent: str = ""
    object_ref: _Object | None = None
    response_status: _Answer = _Answer()


class Uses(msgspec.Struct, frozen=True):
    """What the provider did with its rights.

    Attributes:
        granted: How often each right was used.
        offered: How often each right of a role was used that only an admin binds: (role, right) → count.
        beyond: Requests that succeeded by no right of the provider's own.
    """

    granted: dict[CheckedRight, int]
    offered: dict[tuple[str, CheckedRight], int]
    beyond: Counter[CheckedRight]

    @property
    def unused(self) -> list[CheckedRight]:
        """Rights that no request needed."""
        offered = [(right, count) for (_, right), count in self.offered.items()]
        return [right for right, count in (*self.granted.items(), *offered) if not count]

    def table(self) -> str:
        """Return one line for each right, and one for each request beyond them."""
        lines = [f"{count or 'UNUSED':>8}  {right.verb:<7} {right.what}" for right, count in self.granted.items()]
        lines += [
            f"{count or 'UNUSED':>8}  {right.verb:<7} {right.what}  where {role} is bound"
            for (role, right), count in self.offered.items()
        ]
        lines += [f"{count:>8}  {right.verb:<7} {right.what}  NOT GRANTED" for right, count in self.beyond.items()]
        return "\n".join(lines)


def offers(manifest: str) -> list[tuple[str, CheckedRight]]:
    """Return the rights of the ClusterRoles that `rbac.yaml` does not bind, each with the name of its role."""
    documents = [document for document in yaml.safe_load_all(manifest) if document]
    bound = {d["roleRef"]["name"] for d in documents if d["kind"] == "ClusterRoleBinding"}
    roles = [d for d in documents if d["kind"] == "ClusterRole" and d["metadata"]["name"] not in bound]
    return [(role["metadata"]["name"], right) for role in roles for right in rights_in(role)]


def uses_of(
    rights: Iterable[CheckedRight],
    offered: Iterable[tuple[str, CheckedRight]],
    lines: Iterable[bytes],
    account: str = wellknown.SERVICE_ACCOUNT,
) -> Uses:
    """Count the uses of rights in the lines of audit logs; a request that was forbidden uses none.

    Args:
        rights: What the ServiceAccount is granted.
        offered: What an admin may grant it besides; see `offers`. It counts what no granted right covers.
        lines: JSON of audit events.
        account: The ServiceAccount, whose name that of its program is.
    """
    user, replica = f"{_ACCOUNTS}{account}", re.compile(_REPLICA.format(program=re.escape(account)))
    granted, beyond = dict.fromkeys(rights, 0), Counter[CheckedRight]()
    bindable = dict.fromkeys(offered, 0)
    decode = msgspec.json.Decoder(_Event).decode
    seen = Counter[CheckedRight]()
    for line in lines:
        event = decode(line)
        about = event.object_ref
        ours = event.user.username == user and replica.fullmatch(event.user_agent)
        if not ours or about is None or event.response_status.code == _FORBIDDEN:
            continue
        resource = f"{about.resource}/{about.subresource}" if about.subresource else about.resource
        seen[CheckedRight(event.verb, about.api_group, resource, about.namespace, about.name)] += 1
    for used, count in seen.items():
        if matching := [right for right in granted if _covers(right, used)]:
            granted.update({right: granted[right] + count for right in matching})
        elif optional := [pair for pair in bindable if _covers(pair[1], used)]:
            bindable.update({pair: bindable[pair] + count for pair in optional})
        else:
            beyond[used._replace(name="")] += count
    return Uses(granted, bindable, beyond)


def _covers(right: CheckedRight, used: CheckedRight) -> bool:
    return (
        (right.verb, right.group, right.resource) == (used.verb, used.group, used.resource)
        and right.namespace in {"", used.namespace}
        and right.name in {"", used.name}
    )


def main() -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="+", type=Path, metavar="AUDIT-LOG")
    logs: list[Path] = parser.parse_args().logs
    lines = (line for log in logs for line in log.read_bytes().splitlines())
    manifest = RBAC.read_text(encoding="utf-8")
    uses = uses_of(rights_of(manifest, SHIPPED_NAMESPACE), offers(manifest), lines)
    print(uses.table())
    count = len(uses.granted) + len(uses.offered)
    print(f"{count} rights, {len(uses.unused)} unused, {len(uses.beyond)} used without a grant")
    return 1 if uses.unused or uses.beyond else 0


if __name__ == "__main__":
    sys.exit(main())
