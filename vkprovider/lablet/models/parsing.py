"""A spec as its model, or every field that is wrong."""

from typing import TypeVar

import pydantic

from vkprovider.lablet.models.fields import Model
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.platform.errors import InputError

M = TypeVar("M", bound=Model)


def parse(model: type[M], spec: object) -> M:
    """Validate a spec.

    Raises:
        InputError: `SpecInvalid`, with every field that is wrong.
    """
    try:
        return model.model_validate(spec)
    except pydantic.ValidationError as error:
        faults = [
            f"{'.'.join(map(str, ('spec', *e['loc'])))}: {e['msg'].removeprefix('Value error, ')}"
            for e in error.errors(include_input=False)
        ]
        raise InputError(WorkerReason.SPEC_INVALID, "; ".join(faults)) from None
