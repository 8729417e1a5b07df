"""Lablets of a class that learners have, opened to them as `assign` does it."""

from typing import Any, Final

import msgspec

from tests.component.controllers.looking import eventually
from tests.component.portal.people import RBAC
from tests.support.apiserver import Admin
from vkprovider.classroom.access import binding_for, role_for
from vkprovider.classroom.pods import LabletPod

_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


async def opened(admin: Admin, namespace: str, name: str, prefix: str) -> str:
    """Write the Role on a Pod and its binding for the learner that it names; return the path of the binding.

    Args:
        admin: Writes them.
        namespace: Of the class.
        name: Of the Pod.
        prefix: What usernames begin with in the cluster.
    """
    found: Any = await admin.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
    pod = msgspec.convert(found, LabletPod)
    base = f"{RBAC}/namespaces/{namespace}"
    await admin.create(f"{base}/roles", role_for(pod))
    binding = binding_for(pod, prefix)
    await admin.create(f"{base}/rolebindings", binding)

    asked = {"verb": "create", "resource": "pods", "subresource": "exec", "namespace": namespace, "name": name}
    review = {"spec": {"user": f"{prefix}{pod.user}", "resourceAttributes": asked}}

    async def may() -> bool:
        return bool((await admin.create(_REVIEWS, review))["status"]["allowed"])

    await eventually(may, f"{pod.user} may open consoles of {name}")
    return f"{base}/rolebindings/{binding['metadata']['name']}"
