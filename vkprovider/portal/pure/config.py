"""What the portal offers and whom: the file `VKPROVIDER_PORTAL_CONFIG`, and quotas."""

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Final, NamedTuple, Self

import pydantic
from pydantic import Field

from vkprovider.lablet.models.fields import VERSION_CHARS_MAX, VERSION_PATTERN, Model, Quantity
from vkprovider.platform import quantities
from vkprovider.portal.pure.workbench import Name, WorkbenchConfig, WorkbenchOf

_LABEL_VALUE: Final = r"^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$"
_ENV_NAME: Final = r"^[A-Za-z_][A-Za-z0-9_]*$"
WARM_MAX: Final = 1000
SECRET_ENV: Final = ("*TOKEN*", "*SECRET*", "*PASS*", "*CREDENTIAL*", "*KEY", "*COOKIE*", "*AUTH*")
"""The names of variables that are secret unless the configuration says otherwise."""

Tag = Annotated[str, Field(max_length=VERSION_CHARS_MAX, pattern=VERSION_PATTERN)]
LabelValue = Annotated[str, Field(max_length=63, pattern=_LABEL_VALUE)]


class ImagesConfig(Model):
    """Which versions of definitions the menu shows, in the words of SQR-066."""

    family: LabelValue | None = Field(
        None, description="The family that tags and image types mean; if unset, the only one, or the first by name."
    )
    recommended_tag: Tag = Field("recommended", description="The version that comes first in the menu.")
    num_releases: int = Field(1, ge=0, le=100, description="How many of the newest releases the menu shows.")
    num_weeklies: int = Field(2, ge=0, le=100, description="How many of the newest weekly versions.")
    num_dailies: int = Field(3, ge=0, le=100, description="How many of the newest daily versions.")
    pins: tuple[Tag, ...] = Field((), max_length=100, description="Versions that the menu shows in any case.")
    cycle: int | None = Field(None, ge=0, description="The menu has versions of this cycle, and the recommended one.")
    alias_tags: tuple[Tag, ...] = Field(
        (), max_length=100, description="Versions that are other names of versions with the same content."
    )


class QuotaConfig(Model):
    """The most that the lab of a user may need; what is unset is not bounded."""

    cpu: Quantity | None = Field(None, description="Cores.")
    memory: Quantity | None = Field(None, description="Memory.")
    spawn: bool = Field(default=True, description="Whether the user may have a lab at all.")


class QuotasConfig(Model):
    """Quotas by user and group."""

    default: QuotaConfig = Field(QuotaConfig(), description="The quota of a user who has no other.")
    groups: dict[str, QuotaConfig] = Field({}, description="By group; of several, the largest amounts count.")
    users: dict[str, QuotaConfig] = Field({}, description="By user; it counts instead of those of groups.")


class PortalConfig(Model):
    """The configuration of user labs."""

    images: ImagesConfig = Field(ImagesConfig(), description="Which versions the menu shows.")
    sizes: tuple[LabelValue, ...] = Field(
        ("small", "medium", "large"), min_length=1, max_length=20, description="Sizes, the smallest first."
    )
    default_size: LabelValue | None = Field(None, description="The size of a lab whose request names none.")
    quotas: QuotasConfig = Field(QuotasConfig(), description="What users may have.")
    warm: dict[LabelValue, Annotated[int, Field(ge=0, le=WARM_MAX)]] = Field(
        {}, description="By family: how many labs wait for users."
    )
    env: dict[Annotated[str, Field(max_length=253, pattern=_ENV_NAME)], str] = Field(
        {}, description="Environment of every lab; it counts before everything else."
    )
    secret_env: tuple[Annotated[str, Field(min_length=1, max_length=253)], ...] = Field(
        SECRET_ENV,
        max_length=100,
        description="Names of variables whose values go into a Secret; `*` is any text, case does not matter.",
    )

    workbenches: dict[Name, WorkbenchConfig] = Field({}, max_length=50, description="Kinds of workbenches, by name.")
    workbench_of: WorkbenchOf = Field(WorkbenchOf(), description="Which lab has which workbench.")

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        named = {*self.workbench_of.classes.values(), *self.workbench_of.images.values()} - {""}
        if missing := named - self.workbenches.keys():
            raise ValueError(f"workbenches has no {', '.join(sorted(missing))}")
        if len(set(self.sizes)) < len(self.sizes):
            raise ValueError("sizes names a size twice")
        if self.default_size is not None and self.default_size not in self.sizes:
            raise ValueError(f"defaultSize {self.default_size!r} is none of sizes ({', '.join(self.sizes)})")
        return self


class Amounts(NamedTuple):
    """What a lab needs of its worker."""

    cpu_millicores: int = 0
    memory_bytes: int = 0

    @property
    def cpus(self) -> float:
        """CPU as the number of answers: `4`, `0.5`."""
        whole, rest = divmod(self.cpu_millicores, 1000)
        return self.cpu_millicores / 1000 if rest else whole


class LabQuota(NamedTuple):
    """The most that the lab of a user may need.

    Attributes:
        cpu_millicores, memory_bytes: None without a bound.
        spawn: Whether the user may have a lab at all.
    """

    cpu_millicores: int | None = None
    memory_bytes: int | None = None
    spawn: bool = True


def amounts_of(quantity_of: Mapping[str, str]) -> Amounts:
    """Return the amounts of a RuntimeClass's overhead; one that cannot be read is 0, as it is for the scheduler.

    >>> amounts_of({"cpu": "2500m", "memory": "4Gi", "vkprovider.io/ports": "3"})
    Amounts(cpu_millicores=2500, memory_bytes=4294967296)
    """
    try:
        cpu = quantities.parse_millicores(quantity_of.get("cpu", "0"))
        return Amounts(cpu, quantities.parse_bytes(quantity_of.get("memory", "0")))
    except ValueError:
        return Amounts()


def quota_of(user: str, groups: Collection[str], quotas: QuotasConfig) -> LabQuota:
    """Return the quota of a user: the user's own, else the largest of the user's groups, else the default."""
    if user in quotas.users:
        return _quota(quotas.users[user])
    theirs = [_quota(quotas.groups[group]) for group in groups if group in quotas.groups]
    if not theirs:
        return _quota(quotas.default)
    return LabQuota(
        _largest(quota.cpu_millicores for quota in theirs),
        _largest(quota.memory_bytes for quota in theirs),
        any(quota.spawn for quota in theirs),
    )


def fits(needed: Amounts, quota: LabQuota) -> bool:
    """Return whether a lab that needs this much is within the quota."""
    cpu, memory = quota.cpu_millicores, quota.memory_bytes
    return (
        quota.spawn
        and (cpu is None or needed.cpu_millicores <= cpu)
        and (memory is None or needed.memory_bytes <= memory)
    )


def _quota(config: QuotaConfig) -> LabQuota:
    return LabQuota(
        quantities.parse_millicores(config.cpu) if config.cpu is not None else None,
        quantities.parse_bytes(config.memory) if config.memory is not None else None,
        config.spawn,
    )


def _largest(amounts: Iterable[int | None]) -> int | None:
    """Return the largest amount; one without a bound is larger than any."""
    found = list(amounts)
    return None if None in found else max(amount for amount in found if amount is not None)
