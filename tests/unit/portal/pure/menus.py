"""Definitions, menus and workers for tests."""

from typing import Any

from vkprovider.lablet import names
from vkprovider.platform.objects import CustomResource, Metadata
from vkprovider.portal.pure import portalnames
from vkprovider.portal.pure.config import PortalConfig
from vkprovider.portal.pure.form import MenuNode
from vkprovider.portal.pure.menu import Menu, menu_of

AMOUNTS = {
    "small": {"cpu": "1", "memory": "2Gi"},
    "medium": {"cpu": "2", "memory": "6Gi"},
    "large": {"cpu": "4", "memory": "12Gi"},
}


def definition(
    family: str,
    size: str,
    *versions: str,
    current: str | None = None,
    devices: tuple[str, ...] = ("iosv-159",),
    environment: str = "default",
    name: str = "",
    owner: str = "",
    shared: bool = True,
) -> CustomResource:
    """A definition `FAMILY-SIZE` with these versions, the newest first."""
    kept = [
        {"version": version, "digest": f"sha256:{family}-{size}-{version}", "resources": AMOUNTS.get(size, {})}
        for version in versions
    ]
    labels = {names.LABEL_FAMILY: family} | ({portalnames.LABEL_SIZE: size} if size else {})
    labels |= {names.LABEL_OWNER_NAMESPACE: owner} if owner else {}
    source = {"inline": "lab: {}"} if shared else {"configMap": {"namespace": owner, "name": "x", "key": "cml.yaml"}}
    status: dict[str, Any] = {
        "version": versions[0] if current is None and versions else current or "",
        "versions": kept,
        "devices": [{"label": image, "imageDefinition": image} for image in devices],
    }
    return CustomResource(
        Metadata(name or f"{family}-{size}", labels=labels), {"environment": environment, "source": source}, status
    )


def menu(*definitions: CustomResource, **config: Any) -> Menu:
    return menu_of(definitions, PortalConfig.model_validate(config))


def sized(family: str, *versions: str) -> list[CustomResource]:
    """A family in three sizes."""
    return [definition(family, size, *versions) for size in AMOUNTS]


def node(name: str, *images: str, known: bool = True, comment: str = "", environment: str = "default") -> MenuNode:
    return MenuNode(name, environment, comment, frozenset(images) if known else None)
