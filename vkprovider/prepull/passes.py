"""One pass: ask the registries, Nodes and Pods, then make and delete Pods."""

from collections.abc import Sequence

from vkprovider.platform.errors import Conflict
from vkprovider.platform.kube.api import Api
from vkprovider.platform.kube.client import KubeClient
from vkprovider.portal.pure.nodeimages import ImageName, ordinary_node
from vkprovider.prepull.config import PrepullConfig
from vkprovider.prepull.distribution import DockerConfig
from vkprovider.prepull.plan import (
    LABEL,
    PROGRAM,
    PrepullPlan,
    chosen_tags,
    plan,
    pod_body,
    pull_pod,
)
from vkprovider.prepull.registry import Registry


async def wanted_images(config: PrepullConfig, logins: DockerConfig) -> list[ImageName]:
    """Return the images that Nodes are to hold: those that are named, then those that repositories have.

    The digest of a tag of a repository is asked for, so that a tag that was moved is pulled again.

    Raises:
        InputError: A name is none.
        OutsideError: A registry refuses, or does not answer.
    """
    found = [ImageName.parse(each) for each in config.images]
    for repository in config.repositories:
        name = ImageName.parse(repository.name)
        async with Registry(name, logins, plain_http=repository.plain_http) as registry:
            for tag in chosen_tags(await registry.tags(name), repository):
                tagged = ImageName(name.registry, name.path, tag)
                found.append(tagged._replace(digest=await registry.digest(tagged)))
    return list(dict.fromkeys(found))


class Prepulling:
    """The Pods of one namespace that pull images.

    Args:
        kube: The cluster.
        namespace: Where the Pods are.
        config: What is wanted.
    """

    def __init__(self, kube: KubeClient, namespace: str, config: PrepullConfig) -> None:
        api = Api(kube, namespace)
        self._nodes = api.nodes
        self._pods = api.pods.within(namespace).unstructured
        self._config = config
        self._pulled: set[tuple[str, str]] = set()

    async def look(self, wanted: Sequence[ImageName]) -> PrepullPlan:
        """Return what is to be done; nothing is changed.

        Raises:
            OutsideError: The API server refuses, or does not answer.
        """
        config = self._config
        found = [ordinary_node(each, config.node_selector) for each in await self._nodes.list()]
        pods = [pull_pod(each) for each in await self._pods.list(labels=f"{LABEL}={PROGRAM}")]
        self._pulled |= {(pod.node, pod.image) for pod in pods if pod.pulled}
        nodes = [each for each in found if each is not None]
        return plan(wanted, nodes, pods, config.at_once, self._pulled)

    async def act(self, found: PrepullPlan) -> None:
        """Do it.

        Raises:
            OutsideError: The API server refuses, or does not answer.
        """
        for pod in found.delete:
            await self._pods.delete(pod.name, uid=pod.uid)
        for node, image in found.create:
            try:
                await self._pods.create(pod_body(node, image, self._config.pull_secret))
            except Conflict:  # it is made already, or is still going
                continue
