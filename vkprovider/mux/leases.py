"""The Leases of muxes: which replica serves which mux."""

from functools import partial
from typing import Final

from vkprovider.lablet import names
from vkprovider.mux.pure.reasons import MuxReason
from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError
from vkprovider.platform.kube.events import ObjectRef
from vkprovider.platform.runtime.context import Program
from vkprovider.platform.runtime.leases import LeaseKind

MUX: Final = Program(names.MUX_PROXY, f"{wellknown.GROUP}/mux-replica")
DRY_RUN: Final = Program(f"{names.MUX_PROXY}-dry-run", f"{wellknown.GROUP}/mux-dry-run-replica")
"""The program, and one that only says what it would do: it takes no mux from the other."""
_SECONDS: Final = 40


def muxes_of(program: Program, namespace: str) -> LeaseKind:
    """Return the muxes as keys, `namespace/name`, whose Leases are in the namespace of the program.

    A Lease has no owner, because its mux may be in another namespace; `strays` deletes those of muxes that are gone.
    """
    prefix = f"{program.name}."
    return LeaseKind(
        noun="mux",
        key="mux",
        namespace=namespace,
        seconds=_SECONDS,
        labels={f"{program.member_label}-key": "true"},
        name_of=partial(_name, prefix),
        key_of=partial(_key, prefix),
        about=_about,
        taken_over=MuxReason.MUX_TAKEN_OVER,
        owner=lambda key, uid: None,  # noqa: ARG005 (see above)
        foreign=partial(_foreign, namespace),
    )


def _name(prefix: str, key: str) -> str:
    namespace, _, name = key.partition("/")
    return f"{prefix}{name}.{namespace}"  # neither has a dot


def _key(prefix: str, lease: str) -> str | None:
    name, _, namespace = lease.removeprefix(prefix).partition(".")
    return f"{namespace}/{name}" if lease.startswith(prefix) and namespace else None


def _about(key: str, uid: str) -> ObjectRef:
    namespace, _, name = key.partition("/")
    return ObjectRef("v1", "Service", namespace, name, uid)


def _foreign(namespace: str, lease: str) -> InputError:
    text = f"Lease {namespace}/{lease} exists and is of no mux of this cluster; delete it"
    return InputError(MuxReason.MUX_TAKEN_OVER, text)
