"""The menu: which labs users may ask for, from the definitions; their versions, ordered and named.

    r21_0_1, 1.2.0   a release             w_2022_37      a weekly version     exp_…   an experiment
    r21_0_0_rc1      a release candidate   d_2022_09_14   a daily version

A suffix `_c0026.003` names the cycle. Whatever else a version is called, it has its place after these.

Definitions with one label `vkprovider.io/family` are one image, as SQR-066 says it, in several sizes; each version that
is kept of them is a tag of the image. `latest` and the recommended tag are other names of the current version, unless a
version is called so.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple, Self

from vkprovider.lablet import names
from vkprovider.lablet.models.fields import LATEST
from vkprovider.lablet.models.parameters import ParameterSpec, parameters_of
from vkprovider.lablet.models.status import definition_status
from vkprovider.platform.messages import listed
from vkprovider.platform.objects import CustomResource
from vkprovider.portal.pure import portalnames
from vkprovider.portal.pure.config import Amounts, LabQuota, PortalConfig, amounts_of, fits
from vkprovider.portal.pure.options import BODY, Grounds, ImageBy, ImageType, LabWish, Rejection


class VersionKind(IntEnum):
    """The kinds of versions, in the order of a menu."""

    RELEASE = 0
    WEEKLY = 1
    DAILY = 2
    CANDIDATE = 3
    EXPERIMENTAL = 4
    OTHER = 5


class LabVersion(NamedTuple):
    """A version of content.

    Attributes:
        tag: As the definition writes it.
        kind: Its kind.
        numbers: Order the versions of a kind; a later one has greater numbers.
        cycle: Its cycle; None without one.
        name: For people.
    """

    tag: str
    kind: VersionKind
    numbers: tuple[int, ...]
    cycle: int | None
    name: str


_NUMBER: Final = r"\d{1,9}"
_CYCLE: Final = r"(?:_c(?P<cycle>\d{1,6})(?:\.(?P<build>\d{1,6}))?)?"
_REST: Final = r"(?:[_-](?P<rest>[A-Za-z0-9_.-]+))?"
_SHAPES: Final = (
    (VersionKind.CANDIDATE, "Release candidate", rf"[rv]?(?P<v>{_NUMBER}(?:[._]{_NUMBER})*[._-]?rc{_NUMBER})", _REST),
    (VersionKind.RELEASE, "Release", rf"[rv]?(?P<v>{_NUMBER}(?:[._]{_NUMBER})*)", _REST),
    (VersionKind.WEEKLY, "Weekly", r"w_(?P<v>\d{4}_\d{1,2})", _REST),
    (VersionKind.DAILY, "Daily", r"d_(?P<v>\d{4}_\d{1,2}_\d{1,2})", _REST),
    (VersionKind.EXPERIMENTAL, "Experimental", r"exp_(?P<v>[A-Za-z0-9_.-]+?)", "(?P<rest>)"),
)
_PATTERNS: Final = tuple((kind, word, re.compile(shape + _CYCLE + rest)) for kind, word, shape, rest in _SHAPES)


@lru_cache(maxsize=4096)
def version_of(tag: str) -> LabVersion:
    """Read a version.

    >>> version_of("w_2022_37").name, version_of("1.10.0").numbers > version_of("1.9.0").numbers
    ('Weekly 2022_37', True)
    """
    for kind, word, pattern in _PATTERNS:
        found = pattern.fullmatch(tag)
        if found is None:
            continue
        cycle, build, shown = found["cycle"], found["build"], found["v"]
        if kind in {VersionKind.RELEASE, VersionKind.CANDIDATE}:
            shown = shown.replace("_rc", "-rc").replace("_", ".")
        name = f"{word} {shown}"
        if cycle is not None:
            name += f" (cycle {cycle}, build {build})" if build is not None else f" (cycle {cycle})"
        if found["rest"]:
            name += f" [{found['rest']}]"
        numbers = tuple(int(number) for number in re.findall(_NUMBER, found["v"]))
        ordered = (*numbers, -1, int(cycle or 0), int(build or 0))  # 1.0 is older than 1.0.1 and than 1.0_c1
        return LabVersion(tag, kind, ordered, int(cycle) if cycle is not None else None, name)
    return LabVersion(tag, VersionKind.OTHER, (), None, tag)


def menu_order(version: LabVersion) -> tuple[int, tuple[int, ...], str]:
    """Return the key by which a menu sorts versions: by kind, and the newest of each first."""
    return version.kind, tuple(-number for number in version.numbers), version.tag


_NAMED_MAX: Final = 5
"""How many of the possible values a rejection names."""
_OPTIONS: Final = (BODY, "options")
_KINDS: Final[Mapping[str, VersionKind]] = {
    ImageType.LATEST_RELEASE: VersionKind.RELEASE,
    ImageType.LATEST_WEEKLY: VersionKind.WEEKLY,
    ImageType.LATEST_DAILY: VersionKind.DAILY,
}


class DefinitionVersion(NamedTuple):
    """A version of a definition.

    Attributes:
        definition: The name of the definition.
        version: The version.
        digest: Names the content; "" if it is unknown.
        amounts: What a lab needs.
        environment: The workers that may run it.
        image_definitions: The image definitions of its devices; None for a version whose devices nobody lists.
        class_: The class whose it is, and for whose learners alone; "" for everybody's.
        parameters: What the definition asks for at present.
    """

    definition: str
    version: str
    digest: str
    amounts: Amounts
    environment: str
    image_definitions: frozenset[str] | None
    class_: str = ""
    parameters: tuple[ParameterSpec, ...] = ()

    @property
    def pod_image(self) -> str:
        """The image of a Pod that runs it."""
        return f"{self.definition}:{self.version}"


class MenuImage(NamedTuple):
    """A version of a family.

    Attributes:
        family: The family.
        version: The version.
        aliases: Other names of it.
        sizes: By size, the smallest first.
    """

    family: str
    version: LabVersion
    aliases: tuple[str, ...]
    sizes: Mapping[str, DefinitionVersion]

    @property
    def reference(self) -> str:
        """What a request names it by."""
        return f"{self.family}:{self.version.tag}"

    @property
    def name(self) -> str:
        """What people read."""
        return f"{self.family}: {self.version.name}"

    @property
    def tags(self) -> tuple[str, ...]:
        """All its names within the family."""
        return (self.version.tag, *self.aliases)


class LabChoice(NamedTuple):
    """The lab that a request gets.

    Attributes:
        image: The version of the family.
        size: The size.
        lab: The version of the definition.
    """

    image: MenuImage
    size: str
    lab: DefinitionVersion


class Menu(NamedTuple):
    """What users may ask for.

    Attributes:
        config: The configuration.
        images: All versions, those of the usual family first, in the order of a menu.
        family: The family that tags and image types mean; "" without any.
    """

    config: PortalConfig
    images: tuple[MenuImage, ...] = ()
    family: str = ""

    @property
    def definitions(self) -> frozenset[str]:
        """The names of the definitions that it has, but for those of classes."""
        return frozenset(lab.definition for image in self.images for lab in image.sizes.values() if not lab.class_)

    def only(self, definitions: Collection[str]) -> Self:
        """Return the menu of a user who may use these definitions alone, and those of their classes."""
        images = []
        for image in self.images:
            sizes = {size: lab for size, lab in image.sizes.items() if lab.class_ or lab.definition in definitions}
            if sizes:
                images.append(image._replace(sizes=sizes))
        return self._replace(images=tuple(images))

    @property
    def listed(self) -> list[MenuImage]:
        """All images but those that are only other names."""
        return [image for image in self.images if image.version.tag not in self.config.images.alias_tags]

    def size_order(self, size: str) -> tuple[int, str]:
        """Return the key by which sizes are sorted."""
        return _size_order(self.config, size)

    def usual_size(self, image: MenuImage) -> str:
        """Return the size of a lab whose request names none."""
        size = self.config.default_size
        return size if size is not None and size in image.sizes else next(iter(image.sizes))

    def typed(self, image_type: str) -> MenuImage | None:
        """Return the image that an image type names; None if there is none."""
        return next(iter(self.of_type(image_type)), None)

    def of_type(self, image_type: str) -> list[MenuImage]:
        """Return the images that an image type may mean, the best first; one may lack a size that another has."""
        usual = [image for image in self.images if image.family == self.family]
        if image_type == ImageType.RECOMMENDED:
            return [image for image in usual if self.config.images.recommended_tag in image.tags]
        return [image for image in self._counted(usual) if image.version.kind == _KINDS[image_type]]

    def featured(self) -> list[MenuImage]:
        """Return the images outside the dropdown: recommended ones, the newest of each kind, and pinned ones."""
        config = self.config.images
        most = {
            VersionKind.RELEASE: config.num_releases,
            VersionKind.WEEKLY: config.num_weeklies,
            VersionKind.DAILY: config.num_dailies,
        }
        found = []
        for family in dict.fromkeys(image.family for image in self.images):
            images = [image for image in self.images if image.family == family]
            shown = {image.version.tag for image in images if {*image.tags} & {config.recommended_tag, *config.pins}}
            for kind, number in most.items():
                of_kind = [image.version.tag for image in self._counted(images) if image.version.kind == kind]
                shown.update(of_kind[:number])
            found += [image for image in images if image.version.tag in shown]
        return found

    def _counted(self, images: Iterable[MenuImage]) -> list[MenuImage]:
        """Return the images of the cycle that are no aliases."""
        config = self.config.images
        found = [image for image in images if image.version.tag not in config.alias_tags]
        return [image for image in found if config.cycle in {None, image.version.cycle}]


def owner_of(definition: CustomResource) -> str:
    """Return the class whose a definition is; "" for one of the admins."""
    return definition.metadata.labels.get(names.LABEL_OWNER_NAMESPACE, "")


def is_shared(definition: CustomResource) -> bool:
    """Return whether lablets of all namespaces may run a definition: of a class, one with its topology in itself."""
    return not owner_of(definition) or "inline" in (definition.spec.get("source") or {})


def why_not_offered(definition: CustomResource) -> str:
    """Return why a definition is on no menu; "" if it is on everybody's, or on that of the learners of its class."""
    meta = definition.metadata
    if meta.deletion_timestamp is not None:
        return "is being deleted"
    if not is_shared(definition):
        return f"belongs to the class {owner_of(definition)}, which does not share it"
    if not meta.labels.get(names.LABEL_FAMILY):
        return f"has no label {names.LABEL_FAMILY}"
    if parameters_of(definition.spec) is None:
        return "declares spec.parameters that cannot be read"
    return "" if definition_status(definition).versions else "was never READY"


def offered_to(definitions: Iterable[CustomResource], classes: Collection[str] = ()) -> list[CustomResource]:
    """Return the definitions of which the menu of somebody is made: everybody's, and those that the classes share.

    Args:
        definitions: All of them.
        classes: Those that they attend.
    """
    return [each for each in definitions if owner_of(each) in {"", *classes} and is_shared(each)]


def menu_of(definitions: Iterable[CustomResource], config: PortalConfig) -> Menu:
    """Make the menu of definitions with a family.

    One of a class is a family of its own, whose name is the definition's: so no class changes what another family is.
    Where a family of the admins has that name, it is left out.
    """
    definitions = sorted(definitions, key=lambda each: (owner_of(each) != "", each.metadata.name))
    common = {each.metadata.labels.get(names.LABEL_FAMILY, "") for each in definitions if not owner_of(each)}
    found: dict[tuple[str, str], dict[str, DefinitionVersion]] = {}
    aliases: dict[tuple[str, str], list[str]] = {}
    for definition in definitions:
        family = definition.metadata.labels.get(names.LABEL_FAMILY, "")
        if not family or definition.metadata.deletion_timestamp is not None:
            continue
        if owner_of(definition):
            family = definition.metadata.name
            if family in common:
                continue
        size = definition.metadata.labels.get(portalnames.LABEL_SIZE, "") or config.default_size or config.sizes[0]
        status = definition_status(definition)
        for lab in _labs_of(definition):
            found.setdefault((family, lab.version), {}).setdefault(size, lab)
        if status.version:
            aliases.setdefault((family, status.version), [config.images.recommended_tag, LATEST])
    tags = {family: {version for its, version in found if its == family} for family, _ in found}
    images = [
        MenuImage(
            family,
            version_of(version),
            tuple(alias for alias in aliases.get((family, version), ()) if alias not in tags[family]),
            dict(sorted(sizes.items(), key=lambda each: _size_order(config, each[0]))),
        )
        for (family, version), sizes in found.items()
    ]
    images = [image for image in images if _of_cycle(image, config)]
    families = sorted(tags, key=lambda family: (family not in common, family))
    usual = config.images.family if config.images.family in common & tags.keys() else next(iter(families), "")
    images.sort(key=lambda image: (image.family != usual, families.index(image.family), _order(image, config)))
    return Menu(config, tuple(images), usual)


def _labs_of(definition: CustomResource) -> Iterable[DefinitionVersion]:
    status, parameters = definition_status(definition), parameters_of(definition.spec)
    if parameters is None:  # a lab without its variables would start all the same
        return
    environment = str(definition.spec.get("environment") or names.DEFAULT_ENVIRONMENT)
    devices = frozenset(str(each.image_definition) for each in status.devices if each.image_definition)
    for number, kept in enumerate(status.versions):
        amounts = amounts_of(kept.resources or status.resources)
        listed_devices = devices if number == 0 else None  # the status lists those of the newest version
        yield DefinitionVersion(
            definition.metadata.name,
            kept.version,
            kept.digest,
            amounts,
            environment,
            listed_devices,
            owner_of(definition),
            parameters,
        )


def _of_cycle(image: MenuImage, config: PortalConfig) -> bool:
    """Return whether an image is of the cycle that the menu is limited to, or is the recommended one."""
    of = config.images
    return of.cycle in {None, image.version.cycle} or of.recommended_tag in image.tags


def _order(image: MenuImage, config: PortalConfig) -> tuple[bool, tuple[int, tuple[int, ...], str]]:
    return config.images.recommended_tag not in image.tags, menu_order(image.version)


def _size_order(config: PortalConfig, size: str) -> tuple[int, str]:
    return config.sizes.index(size) if size in config.sizes else len(config.sizes), size


def resolve(menu: Menu, wanted: LabWish, quota: LabQuota) -> LabChoice | Rejection:
    """Return the lab that a request gets from the menu, or why it gets none.

    Args:
        menu: With what the user may use.
        wanted: The request.
        quota: Of the user.
    """
    if not quota.spawn:
        return Rejection(Grounds.PERMISSION_DENIED, "your quota allows no lab; ask whoever runs the labs")
    images = _images(menu, wanted)
    if isinstance(images, Rejection):
        return images
    image = next((image for image in images if wanted.size in image.sizes), images[0])
    if wanted.size and wanted.size not in image.sizes:
        told = f"{image.reference} has no size {wanted.size!r}; there is {listed(list(image.sizes), _NAMED_MAX)}"
        return Rejection(Grounds.INVALID_LAB_SIZE, told, (*_OPTIONS, "size"))
    size = wanted.size or menu.usual_size(image)
    lab = image.sizes[size]
    if not fits(lab.amounts, quota):
        fit = [other for other, its in image.sizes.items() if fits(its.amounts, quota)]
        told = f"size {size} of {image.reference} is more than your quota allows"
        told += f"; it would fit as {listed(fit, _NAMED_MAX)}" if fit else "; no size of it fits"
        return Rejection(Grounds.INSUFFICIENT_QUOTA, told, (*_OPTIONS, "size"))
    return LabChoice(image, size, lab)


def _images(menu: Menu, wanted: LabWish) -> list[MenuImage] | Rejection:
    """Return the images that a request may mean, the best first: definitions of one family may differ in versions."""
    loc = (*_OPTIONS, str(wanted.by))
    family, _, tag = wanted.image.partition(":")
    if wanted.by is ImageBy.TYPE:
        found = menu.of_type(wanted.image)
    elif wanted.by is ImageBy.TAG:
        found = [image for image in menu.images if image.family == menu.family and wanted.image in image.tags]
    else:
        found = [image for image in menu.images if image.family == family and tag in image.tags]
    if found:
        return found
    shown = [image.version.tag if wanted.by is ImageBy.TAG else image.reference for image in menu.listed]
    there = f"there is {listed(shown, _NAMED_MAX)}" if shown else "there is none that you may use"
    return Rejection(Grounds.UNKNOWN_IMAGE, f"there is no image {wanted.image[:80]!r}; {there}", loc)
