"""The file of `vkprovider prepull`: images, and repositories of which some versions count."""

from pathlib import Path
from typing import Final

import yaml
from pydantic import Field, ValidationError

from vkprovider.lablet.models.fields import Model
from vkprovider.platform.errors import InputError
from vkprovider.platform.reasons import StartReason
from vkprovider.portal.pure.config import ImagesConfig

_FILE_CHARS_MAX: Final = 1 << 20


class RepositoryConfig(ImagesConfig):
    """A repository, and which of its versions count, in the words of the portal's menu."""

    name: str = Field(min_length=1, max_length=255, description="`quay.io/team/workbench`, without a tag.")
    plain_http: bool = Field(default=False, description="Whether the registry speaks no TLS.")


class PrepullConfig(Model):
    """What ordinary Nodes are to hold."""

    images: tuple[str, ...] = Field((), max_length=100, description="Images by name; one without a tag has `latest`.")
    repositories: tuple[RepositoryConfig, ...] = Field(
        (), max_length=20, description="Repositories, of which a registry is asked for tags."
    )
    node_selector: dict[str, str] = Field({}, description="Labels of the Nodes; none: all ordinary Nodes.")
    at_once: int = Field(2, ge=1, le=100, description="How many Nodes pull at once.")
    pull_secret: str = Field("", max_length=253, description="Secret of the namespace that the Pods pull with.")


def read_config(path: Path) -> PrepullConfig:
    """Read the file.

    Raises:
        InputError: It cannot be read, or is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
        return PrepullConfig.model_validate(yaml.safe_load(text[:_FILE_CHARS_MAX]) or {})
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(StartReason.SETTING_INVALID, f"{path} cannot be read: {error}") from None
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        raise InputError(StartReason.SETTING_INVALID, f"{path}: {faults}") from None
