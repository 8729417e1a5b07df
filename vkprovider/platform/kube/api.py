"""The kinds of resources that our programs work with."""

from typing import Final

from vkprovider.platform import wellknown
from vkprovider.platform.environment import EnvPod
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import PartialObject, Resource, kind
from vkprovider.platform.objects import (
    ConfigMap,
    CustomResource,
    EndpointSlice,
    Event,
    Lease,
    Node,
    Pod,
    RuntimeClass,
    Secret,
    SelfSubjectReview,
)

NAMESPACES: Final = kind("/api/v1", "namespaces", PartialObject)
SELF_SUBJECT_REVIEWS: Final = kind("/apis/authentication.k8s.io/v1", "selfsubjectreviews", SelfSubjectReview)
CONFIG_MAPS: Final = kind("/api/v1", "configmaps", ConfigMap)
SECRETS: Final = kind("/api/v1", "secrets", Secret)
PODS: Final = kind("/api/v1", "pods", Pod)
ENV_PODS: Final = kind("/api/v1", "pods", EnvPod)
EVENTS: Final = kind("/api/v1", "events", Event)
NODES: Final = kind("/api/v1", "nodes", Node)
LEASES: Final = kind("/apis/coordination.k8s.io/v1", "leases", Lease)
ENDPOINT_SLICES: Final = kind("/apis/discovery.k8s.io/v1", "endpointslices", EndpointSlice)
ROLES: Final = kind("/apis/rbac.authorization.k8s.io/v1", "roles", PartialObject)
SERVICE_ACCOUNTS: Final = kind("/api/v1", "serviceaccounts", PartialObject)
ROLE_BINDINGS: Final = kind("/apis/rbac.authorization.k8s.io/v1", "rolebindings", PartialObject)
RUNTIME_CLASSES: Final = kind("/apis/node.k8s.io/v1", "runtimeclasses", RuntimeClass)
WORKERS: Final = kind(f"/apis/{wellknown.API_VERSION}", "cmlworkers", CustomResource)
DEFINITIONS: Final = kind(f"/apis/{wellknown.API_VERSION}", "labletdefinitions", CustomResource)


class Api:
    """The resources that the provider works with.

    Attributes:
        config_maps: ConfigMaps of the provider's namespace: claims, content, leftovers, session events.
        secrets: Secrets of the namespace of logins: credentials of workers and devices.
        endpoint_slices: EndpointSlices of the provider's namespace: exposed lablets.
        member_leases: The replicas' Leases.
        node_leases: The Nodes' Leases.
        pods: Pods of all namespaces; bind it to one with `within`.
        env_pods: The same Pods with their environment variables.
        roles, role_bindings: Of assigned lablets, in all namespaces; bind them to one with `within`.
        nodes: Nodes.
        runtime_classes: RuntimeClasses.
        workers: CMLWorkers.
        definitions: LabletDefinitions.
        namespaces: Namespaces.
        self_reviews: Answer who the caller is; see `review_self`.
    """

    def __init__(self, kube: KubeClient, namespace: str, logins: str = "") -> None:
        self.config_maps: Final = Resource(kube, CONFIG_MAPS, namespace)
        self.secrets: Final = Resource(kube, SECRETS, logins)
        self.endpoint_slices: Final = Resource(kube, ENDPOINT_SLICES, namespace)
        self.member_leases: Final = Resource(kube, LEASES, namespace)
        self.node_leases: Final = Resource(kube, LEASES, wellknown.NODE_LEASE_NAMESPACE)
        self.pods: Final = Resource(kube, PODS)
        self.env_pods: Final = Resource(kube, ENV_PODS)
        self.service_accounts: Final = Resource(kube, SERVICE_ACCOUNTS)
        self.roles: Final = Resource(kube, ROLES)
        self.role_bindings: Final = Resource(kube, ROLE_BINDINGS)
        self.nodes: Final = Resource(kube, NODES)
        self.runtime_classes: Final = Resource(kube, RUNTIME_CLASSES)
        self.workers: Final = Resource(kube, WORKERS)
        self.definitions: Final = Resource(kube, DEFINITIONS)
        self.namespaces: Final = Resource(kube, NAMESPACES)
        self.self_reviews: Final = Resource(kube, SELF_SUBJECT_REVIEWS)

    async def review_self(self) -> SelfSubjectReview:
        """Ask the API server who the caller is; every user may.

        Raises:
            OutsideError: Any of its kinds.
        """
        return await self.self_reviews.create({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
