"""Rights used and rights granted: `python -m tools.rights AUDIT-LOG…` prints each right of the provider and its uses.

The rights are those of `manifests/base/rbac.yaml`, the uses are the requests of the provider's ServiceAccount in audit
logs of API servers (JSON lines). `make rights` makes the logs: it runs the cluster tests. The exit code is 1 if a right
was granted and never used, or used without a grant (another role gives it).
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from vkprovider.doctor.rights import SERVICE_ACCOUNT, SHIPPED_NAMESPACE, Right, rights_of

RBAC: Final = Path(__file__).parents[1] / "manifests" / "base" / "rbac.yaml"
USER: Final = f"system:serviceaccount:{SHIPPED_NAMESPACE}:{SERVICE_ACCOUNT}"
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
    object_ref: _Object | None = None
    response_status: _Answer = _Answer()


class Uses(msgspec.Struct, frozen=True):
    """What the provider did with its rights.

    Attributes:
        granted: How often each right was used.
        beyond: Requests that succeeded by no right of the provider's own.
    """

    granted: dict[Right, int]
    beyond: Counter[Right]

    @property
    def unused(self) -> list[Right]:
        """Rights that no request needed."""
        return [right for right, count in self.granted.items() if not count]

    def table(self) -> str:
        """Return one line for each right, and one for each request beyond them."""
        lines = [f"{count or 'UNUSED':>8}  {right.verb:<7} {right.what}" for right, count in self.granted.items()]
        lines += [f"{count:>8}  {right.verb:<7} {right.what}  NOT GRANTED" for right, count in self.beyond.items()]
        return "\n".join(lines)


def uses_of(rights: Iterable[Right], lines: Iterable[bytes]) -> Uses:
    """Count the uses of rights in the lines of audit logs; a request that was forbidden uses none."""
    granted, beyond = dict.fromkeys(rights, 0), Counter[Right]()
    decode = msgspec.json.Decoder(_Event).decode
    seen = Counter[Right]()
    for line in lines:
        event = decode(line)
        about = event.object_ref
        if event.user.username != USER or about is None or event.response_status.code == _FORBIDDEN:
            continue
        resource = f"{about.resource}/{about.subresource}" if about.subresource else about.resource
        seen[Right(event.verb, about.api_group, resource, about.namespace, about.name)] += 1
    for used, count in seen.items():
        matching = [right for right in granted if _covers(right, used)]
        for right in matching:
            granted[right] += count
        if not matching:
            beyond[used._replace(name="")] += count
    return Uses(granted, beyond)


def _covers(right: Right, used: Right) -> bool:
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
    uses = uses_of(rights_of(RBAC.read_text(encoding="utf-8"), SHIPPED_NAMESPACE), lines)
    print(uses.table())
    print(f"{len(uses.granted)} rights, {len(uses.unused)} unused, {len(uses.beyond)} used without a grant")
    return 1 if uses.unused or uses.beyond else 0


if __name__ == "__main__":
    sys.exit(main())
