"""Workbenches allowed for a while: what an admin does for them, until the API server has noticed it, and back."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from tests.component.controllers.looking import eventually
from tests.support.apiserver import SYSTEM, Admin, ApiServer, Refused
from vkprovider.platform.shipped import find_manifests

_POLICY: Final = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/vkprovider-confine-portal"
_PLACE: Final = "workbenches-probe"
"""A Namespace of another portal, whose account the policy concerns as well."""
_PORTAL: Final = f"system:serviceaccount:{SYSTEM}:vkprovider-portal"
_BINDING: Final[dict[str, Any]] = {
    "metadata": {"name": "nb-probe-workbench"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "vkprovider-workbench"},
    "subjects": [{"kind": "ServiceAccount", "name": "nb-probe-workbench", "namespace": _PLACE}],
}


@asynccontextmanager
async def workbenches_allowed(
    server: ApiServer, admin: Admin, images: Sequence[str], drivers: Sequence[str] = ()
) -> AsyncIterator[None]:
    """Install the component, and have the policy list images and drivers, each of them in force before this goes on.

    An API server takes a moment to enforce what was just written, and the portal tries again only after a minute.
    """
    component = str(find_manifests() / "components" / "workbench")
    if await admin.get(f"/api/v1/namespaces/{_PLACE}") is None:
        await admin.create(
            "/api/v1/namespaces", {"metadata": {"name": _PLACE, "labels": {"vkprovider.io/portal": _PLACE}}}
        )
    server.kubectl("apply", "--server-side", "-k", component)
    await _list(admin, images, drivers)

    async def allowed() -> bool:
        return await _bound(admin) and await admin.may(_PORTAL, "create", "resourcequotas", "")

    async def forbidden() -> bool:
        return not await _bound(admin)

    await eventually(allowed, "workbenches are allowed")
    try:
        yield
    finally:
        await _list(admin, (), ())
        server.kubectl("delete", "-k", component)
        await eventually(forbidden, "workbenches are no longer allowed")


async def _list(admin: Admin, images: Sequence[str], drivers: Sequence[str]) -> None:
    found = await admin.get(_POLICY)
    assert found is not None
    variables = found["spec"]["variables"]
    for each in variables:
        each["expression"] = {"images": str(list(images)), "drivers": str(list(drivers))}.get(
            each["name"], each["expression"]
        )
    await admin.patch(_POLICY, {"spec": {"variables": variables}})


async def _bound(admin: Admin) -> bool:
    """Return whether the policy lets a portal give an account the rights of a workbench."""
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{_PLACE}/rolebindings?dryRun=All"
    try:
        await admin.request("POST", path, _BINDING, user=f"system:serviceaccount:{_PLACE}:vkprovider-portal")
    except Refused as refused:
        if "and no other role" not in str(refused):
            raise
        return False
    return True
