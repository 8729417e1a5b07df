"""The base class of all groups of settings."""

from pydantic import BaseModel, ConfigDict


class Group(BaseModel):
    """Settings of one subject; in code they go by the fields' names, in the environment by their aliases."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True, frozen=True, hide_input_in_errors=True)
