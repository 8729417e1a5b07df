"""The file that `VKPROVIDER_PORTAL_CONFIG` names: the menu of labs, sizes, quotas, warm labs and environment."""

from typing import Annotated, Final, Self

import pydantic
from pydantic import Field

from vkprovider.lablet.models.fields import VERSION_CHARS_MAX, VERSION_PATTERN, Model, Quantity

_LABEL_VALUE: Final = r"^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$"
_ENV_NAME: Final = r"^[A-Za-z_][A-Za-z0-9_]*$"
WARM_MAX: Final = 1000

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
    cycle: int | None = Field(None, ge=0, description="Show versions of this cycle only.")
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
        {}, description="Environment of every lab; it counts before what a request brings."
    )

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if len(set(self.sizes)) < len(self.sizes):
            raise ValueError("sizes names a size twice")
        if self.default_size is not None and self.default_size not in self.sizes:
            raise ValueError(f"defaultSize {self.default_size!r} is none of sizes ({', '.join(self.sizes)})")
        return self
