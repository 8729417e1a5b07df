"""What users may choose: the menu, made of definitions, and the quotas of the configuration.

A definition with a family that is of no class is on the menu of everybody. One of a class that shares it is on that of
the learners whom a RoleBinding of the class names: its lablets may run in any namespace, so that nothing of the
provider's admission depends on who asks, and nobody gets a right by it.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from pydantic import ValidationError

from vkprovider.lablet import names
from vkprovider.platform.errors import InputError
from vkprovider.platform.objects import CustomResource, Node
from vkprovider.platform.reasons import StartReason
from vkprovider.platform.rights import User
from vkprovider.portal.pure.config import Amounts, LabQuota, PortalConfig, quota_of
from vkprovider.portal.pure.environment import LabEnvironment, answered, merged, said_of
from vkprovider.portal.pure.form import MenuNode
from vkprovider.portal.pure.menu import (
    LabChoice,
    Menu,
    MenuImage,
    menu_of,
    offered_to,
    owner_of,
    resolve,
    why_not_offered,
)
from vkprovider.portal.pure.nodeimages import BenchImage, bench_image
from vkprovider.portal.pure.options import LabWish, Rejection
from vkprovider.portal.pure.portalnames import LABEL_WORKBENCH
from vkprovider.portal.pure.record import BenchRequest
from vkprovider.portal.pure.workbench import workbench_of
from vkprovider.portal.service.informers import PortalInformers
from vkprovider.portal.service.learners import LabletLearners

if TYPE_CHECKING:
    from vkprovider.portal.service.requests import LabCaller

_MENUS_KEPT_MAX = 64


class Choices:
    """The menu, and what of it a user may have."""

    def __init__(self, config: PortalConfig, objects: PortalInformers, learners: LabletLearners) -> None:
        """Offer what is defined.

        Args:
            config: The configuration of user labs.
            objects: What is followed: the definitions are the menu.
            learners: Knows who attends which class.
        """
        self.config = config
        self._objects = objects
        self._learners = learners
        self._menus: dict[frozenset[str], Menu] = {}

    def definition_changed(self, old: CustomResource | None, new: CustomResource | None) -> None:  # noqa: ARG002 (a handler)
        """Make the menus again when they are asked for the next time."""
        self._menus.clear()

    def classes_of(self, user: User) -> list[str]:
        """Return the classes whose definitions are on a menu, and that somebody attends as a RoleBinding says it."""
        owners = {owner_of(each) for each in self._objects.definitions.items.values() if not why_not_offered(each)}
        owners.discard("")
        return [name for name in self._learners.attended_by(user.username, user.groups) if name in owners]

    def menu(self, classes: Collection[str] = ()) -> Menu:
        """Return the menu of everybody, with what some classes share with their learners."""
        key = frozenset(classes)
        if (found := self._menus.get(key)) is None:
            found = menu_of(offered_to(self._objects.definitions.items.values(), key), self.config)
            if len(self._menus) >= _MENUS_KEPT_MAX:
                self._menus.clear()
            self._menus[key] = found
        return found

    def hindrances(self) -> dict[str, str]:
        """Return why definitions are not on the menu of everybody, by their names, for those who can change it."""
        found = {each.metadata.name: _hindrance(each) for each in self._objects.definitions.items.values()}
        return {name: why for name, why in sorted(found.items()) if why}

    def quota(self, caller: "LabCaller") -> LabQuota:
        """Return the quota of a user."""
        return quota_of(caller.user, caller.groups, self.config.quotas)

    def amounts_of(self, image: str) -> Amounts:
        """Return what the lab of a Pod's image needs of its worker; nothing if the image is on no menu."""
        return next((each.lab.amounts for each in self._every() if each.lab.pod_image == image), Amounts())

    def environment(self, wanted: LabWish, choice: LabChoice) -> LabEnvironment | Rejection:
        """Return the variables of a lab that is asked for, or what is wrong with those that the request gives."""
        config = self.config
        answers = answered(choice, wanted, config.env)
        if isinstance(answers, Rejection):
            return answers
        return merged([wanted.env, answers, said_of(choice, wanted), config.env], config.secret_env)

    def environment_of(self, image: str) -> Mapping[str, str]:
        """Return the variables of a lab of a Pod's image that nobody has asked for, but for secret ones."""
        said = next((said_of(each, None) for each in self._every() if each.lab.pod_image == image), {})
        return merged([said, self.config.env], self.config.secret_env).plain

    def _every(self) -> Iterator[LabChoice]:
        every = self.menu({owner_of(each) for each in self._objects.definitions.items.values()} - {""})
        return (LabChoice(found, size, lab) for found in every.images for size, lab in found.sizes.items())

    def nodes(self) -> list[MenuNode]:
        """Return the Nodes that labs start on."""
        return [menu_node(node) for node in self._objects.nodes.items.values()]

    def bench(self, wanted: LabWish, choice: LabChoice) -> BenchRequest | None:
        """Return the workbench beside a lab that somebody chose; None if it has none."""
        found = self._bench_of(choice.image, choice.lab.definition, wanted.class_)
        return BenchRequest(name=found, size=choice.size) if found in self.config.workbenches else None

    def bench_images(self) -> dict[str, BenchImage]:
        """Return where the images of workbenches are, by the names of workbenches."""
        ordinary = self._objects.ordinary
        nodes = list(ordinary.items.values()) if ordinary is not None else []
        return {name: bench_image(name, each, nodes) for name, each in self.config.workbenches.items()}

    def beside(self, menu: Menu, class_: str) -> dict[str, str]:
        """Return what is said of the workbench of each entry of a menu, by reference; nothing of those without one."""
        images = self.bench_images()
        found = {each.reference: self._bench_of(each, _definition_of(each), class_) for each in menu.listed}
        return {reference: images[name].words for reference, name in found.items() if name in images}

    def _bench_of(self, image: MenuImage, definition: str, class_: str) -> str:
        """Return the name of the workbench of a lab; "" if it has none."""
        found = self._objects.definitions.items.get(definition)
        labels = found.metadata.labels if found is not None else {}
        return workbench_of(
            self.config.workbench_of,
            class_=class_,
            family=image.family,
            version=image.version.tag,
            labelled=labels.get(LABEL_WORKBENCH, ""),
        )

    def choose(self, caller: "LabCaller", wanted: LabWish, menu: Menu) -> LabChoice | Rejection:
        """Return the lab that a request gets of the caller's menu, or why it gets none."""
        return resolve(menu, wanted, self.quota(caller))


def _definition_of(image: MenuImage) -> str:
    return next(iter(image.sizes.values())).definition


def _hindrance(definition: CustomResource) -> str:
    owner = owner_of(definition)
    return why_not_offered(definition) or (f"is for the learners of the class {owner} alone" if owner else "")


def menu_node(node: Node) -> MenuNode:
    """Return the Node of a worker as the menu sees it: one that lists no image definition does not say what it has."""
    comment = "cordoned" if node.spec.unschedulable else "" if node.is_ready else "not ready"
    environment = node.metadata.labels.get(names.LABEL_ENV, names.DEFAULT_ENVIRONMENT)
    shown = {name for image in node.status.images for name in image.names if name.startswith(names.IMAGE_PREFIX)}
    images = frozenset(name.removeprefix(names.IMAGE_PREFIX) for name in shown)
    return MenuNode(node.metadata.name, environment, comment, images or None)


def read_config(path: str | None) -> PortalConfig:
    """Read the file of `VKPROVIDER_PORTAL_CONFIG`; without one everything has its default.

    Raises:
        InputError: `SettingInvalid`: the file is missing or wrong.
    """
    if path is None:
        return PortalConfig()
    try:
        return PortalConfig.model_validate(yaml.safe_load(Path(path).read_text("utf-8")) or {})
    except (OSError, yaml.YAMLError, UnicodeDecodeError, ValidationError) as error:
        raise InputError(StartReason.SETTING_INVALID, f"VKPROVIDER_PORTAL_CONFIG {path}: {error}") from None
