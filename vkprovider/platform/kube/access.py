"""What the user of a client may do, as the API server answers."""

from typing import Any, Final

from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource, kind

_GROUP: Final = "authorization.k8s.io"
_REVIEWS: Final = kind(f"/apis/{_GROUP}/v1", "selfsubjectaccessreviews", dict[str, Any])


async def may(kube: KubeClient, verb: str, resource: str, namespace: str = "", name: str = "") -> bool:
    """Return whether the user has a right; every user may ask.

    Args:
        kube: The API server, and the user.
        verb: Any, also one that no API has.
        resource: As `kubectl auth can-i` has it: `pods`, `deployments.apps/scale`.
        namespace: Empty: in all namespaces, or for what has none.
        name: Empty: every object.

    Raises:
        OutsideError: The API server did not answer.
    """
    whole, _, subresource = resource.partition("/")
    plural, _, group = whole.partition(".")
    asked = {
        "verb": verb,
        "group": group,
        "resource": plural,
        "subresource": subresource,
        "namespace": namespace,
        "name": name,
    }
    spec = {"resourceAttributes": {key: value for key, value in asked.items() if value}}
    body = {"apiVersion": f"{_GROUP}/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
    answer = await Resource(kube, _REVIEWS).create(body)
    return bool(answer["status"].get("allowed"))
