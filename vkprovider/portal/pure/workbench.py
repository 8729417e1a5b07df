"""Workbenches as an admin describes them: images, sizes, volumes, secrets and egress; and which lab has which one.

    workbenches:
      pyats:
        image: registry.example.com/workbench@sha256:…
        sizes: {large: {cpu: "2", memory: 4Gi, storage: 8Gi}}
        volumes: {home: {csi: {driver: nfs.csi.k8s.io, volumeAttributes: {server: files, share: "/homes/{key}"}}}}
        home: home
        egress: [{cidr: 203.0.113.0/24, ports: [443]}]
    workbenchOf:
      images: {netlab: pyats}
      classes: {net101: pyats, net102: ""}

A class counts before an entry of the menu, and that before the label `vkprovider.io/workbench` of a definition; "" is
none. What is not described here no workbench has: a user chooses nothing of it.
"""

import ipaddress
from typing import Annotated, Final, Self

import pydantic
from pydantic import Field

from vkprovider.lablet.models.fields import KEY, NAMESPACE, Labels, Model, Port, Quantity
from vkprovider.portal.pure.identity import ID_MAX, ID_MIN

_NAME: Final = r"^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$"
_IMAGE: Final = r"^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,511}$"
_PATH: Final = r"^/[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$"
_OURS: Final = ("/home", "/etc", "/proc", "/sys", "/dev", "/var/run", "/run", "/tmp", "/lab")  # noqa: S108 (of Pods)
"""No volume is mounted there: these paths are the workbench's own."""
_COUNTED: Final = (
    r"^(pods|requests\.(cpu|memory|ephemeral-storage|storage)|persistentvolumeclaims"
    r"|services(\.loadbalancers|\.nodeports)?|count/[a-z0-9./-]{1,200})$"
)
"""What a quota may bound; no limits, for it would refuse the lab, whose containers have none."""
_TAKEN: Final = frozenset({"files", "home-empty", "nss", "token", "tmp"})
"""Names of volumes that every workbench has."""

Name = Annotated[str, Field(pattern=_NAME)]
Image = Annotated[str, Field(pattern=_IMAGE)]
Id = Annotated[int, Field(ge=ID_MIN, le=ID_MAX)]
Text = Annotated[str, Field(max_length=4096)]


def _cidr(text: str) -> str:
    """Return a network as Kubernetes writes it.

    Raises:
        ValueError: It is none, or has bits beside its prefix.
    """
    return str(ipaddress.ip_network(text))


Cidr = Annotated[str, pydantic.AfterValidator(_cidr)]


class BenchSize(Model):
    """The most that a workbench uses."""

    cpu: Quantity = Field("1", description="Cores.")
    memory: Quantity = Field("2Gi", description="Memory.")
    storage: Quantity = Field("4Gi", description="What it writes on its node, outside its volumes.")


class CsiVolume(Model):
    """A volume of a CSI driver that mounts volumes without a claim, such as the share of a file server."""

    driver: str = Field(max_length=63, description="The driver, which the policy vkprovider-confine-portal names too.")
    volume_attributes: dict[str, Text] = Field({}, description="Its parameters; {key} is the user's key in names.")
    read_only: bool = Field(default=False, description="Whether it can only be read.")


class BenchVolume(Model):
    """A volume: one of a CSI driver, or else an empty folder that ends with the workbench."""

    csi: CsiVolume | None = Field(None, description="By a driver.")
    size: Quantity | None = Field(None, description="The most that an empty folder holds.")

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if (self.csi is None) == (self.size is None):
            raise ValueError("name either csi or the size of an empty folder")
        return self


class BenchMount(Model):
    """Where a volume is in the workbench."""

    volume: Name = Field(description="The volume.")
    path: str = Field(pattern=_PATH, max_length=255, description="Where it is.")
    read_only: bool = Field(default=False, description="Whether it can only be read.")

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if ".." in self.path.split("/") or any(f"{self.path}/".startswith(f"{each}/") for each in _OURS):
            raise ValueError(f"{self.path} is none of the paths where a volume may be")
        return self


class BenchInit(Model):
    """The container that runs before a user's first workbench, until it has succeeded once."""

    image: Image = Field(description="Its image.")
    command: tuple[Text, ...] = Field((), max_length=50, description="Its command, if not the image's.")


class BenchEgress(Model):
    """Where a workbench may connect to, beside names and the API server."""

    cidr: Cidr = Field(description="Addresses; those of workers are left out.")
    ports: tuple[Port, ...] = Field((), max_length=50, description="TCP ports; none: all.")


class BenchPeer(Model):
    """Pods by their labels, in a namespace."""

    namespace: str = Field(max_length=63, pattern=NAMESPACE, description="The namespace.")
    labels: Labels = Field(min_length=1, description="Labels of the Pods.")


class WorkbenchConfig(Model):
    """A kind of workbench."""

    image: Image = Field(description="The image, which the policy vkprovider-confine-portal names too.")
    command: tuple[Text, ...] = Field((), max_length=50, description="The command, if not the image's.")
    port: int = Field(8888, ge=1024, le=65535, description="Where it speaks HTTP.")
    sizes: dict[str, BenchSize] = Field({}, max_length=20, description="By size of the lab.")
    default_size: BenchSize = Field(BenchSize(), description="Where the size of the lab is none of sizes.")
    uid: Id = Field(1000, description="User, where the token of the learner names none.")
    gid: Id = Field(1000, description="Primary group, where the token names none.")
    volumes: dict[Name, BenchVolume] = Field({}, max_length=20, description="Volumes, by name.")
    home: Name | None = Field(
        None,
        description="The volume of the learner's home, which outlives the lab; unset: a folder that ends.",
    )
    mounts: tuple[BenchMount, ...] = Field((), max_length=20, description="Where the other volumes are.")
    secrets: tuple[Annotated[str, Field(pattern=KEY, max_length=253)], ...] = Field(
        (), max_length=50, description="Keys of the Secret vkprovider-workbench of the portal's namespace, as files."
    )
    pull_secret: bool = Field(
        default=False,
        description="Whether images are pulled by the Secret vkprovider-workbench-pull from there.",
    )
    init: BenchInit | None = Field(None, description="The container that provisions a user.")
    egress: tuple[BenchEgress, ...] = Field((), max_length=100, description="Where it may connect to.")
    ingress: tuple[BenchPeer, ...] = Field((), max_length=10, description="Who reaches it beside the portal.")
    dns: BenchPeer = Field(
        BenchPeer(namespace="kube-system", labels={"k8s-app": "kube-dns"}), description="Who answers for names."
    )
    node_selector: Labels = Field({}, description="Labels of its nodes.")
    quota: dict[Annotated[str, Field(pattern=_COUNTED)], Quantity] = Field(
        {"pods": "4", "persistentvolumeclaims": "0", "services.loadbalancers": "0", "services.nodeports": "0"},
        max_length=20,
        description="What all of the lab's namespace has at most, the lab itself included, as a ResourceQuota says it; "
        "`{}`: no quota.",
    )

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        used = {each.volume for each in self.mounts} | ({self.home} if self.home is not None else set())
        if missing := used - self.volumes.keys():
            raise ValueError(f"volumes has no {', '.join(sorted(missing))}")
        if taken := _TAKEN & self.volumes.keys():
            raise ValueError(f"{', '.join(sorted(taken))} cannot be the name of a volume")
        return self

    def size_of(self, size: str) -> BenchSize:
        """Return the limits for a lab of a size."""
        return self.sizes.get(size, self.default_size)


class WorkbenchOf(Model):
    """Which lab has which workbench; "" is none."""

    classes: dict[str, str] = Field({}, description="By the namespace of a class.")
    images: dict[str, str] = Field({}, description="By entry of the menu, FAMILY or FAMILY:TAG.")


def workbench_of(of: WorkbenchOf, *, class_: str, family: str, version: str, labelled: str) -> str:
    """Return the name of the workbench of a lab; "" if it has none.

    >>> of = WorkbenchOf(classes={"net102": ""}, images={"netlab": "pyats"})
    >>> workbench_of(of, class_="", family="netlab", version="1.0", labelled="")
    'pyats'
    >>> workbench_of(of, class_="net102", family="netlab", version="1.0", labelled="shell")
    ''

    Args:
        of: The configuration.
        class_: The class of the lab; "" if it has none.
        family: Of its entry of the menu.
        version: The same.
        labelled: The label of its definition; "" without.
    """
    if class_ and class_ in of.classes:
        return of.classes[class_]
    by_image = (of.images[entry] for entry in (f"{family}:{version}", family) if entry in of.images)
    return next(by_image, labelled)
