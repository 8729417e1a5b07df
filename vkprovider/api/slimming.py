"""What is kept in memory of objects that tenants write."""

from typing import Final

import msgspec

from vkprovider.api import names
from vkprovider.api.objects import Pod

_PREFIX: Final = f"{names.GROUP}/"
_CHARS_MAX: Final = 64 * 1024
"""Of all annotations of a Pod together; what users write and what the provider reports is a few KiB."""
_CUT_CHARS: Final = 1024
"""Of one annotation where there are too many; every input that is longer is refused."""


def slim_pod(pod: Pod) -> Pod:
    """Return a Pod with the labels and annotations of vkprovider alone.

    Every replica keeps all Pods on virtual Nodes, and an API server accepts 256 KiB of annotations on each.
    """
    meta = pod.metadata
    labels = {key: value for key, value in meta.labels.items() if key.startswith(_PREFIX)}
    notes = {key: value for key, value in meta.annotations.items() if key.startswith(_PREFIX)}
    if sum(len(key) + len(value) for key, value in notes.items()) > _CHARS_MAX:
        known = sorted(names.POD_ANNOTATIONS & notes.keys())
        notes = {key: notes[key][:_CUT_CHARS] for key in known}
    if len(labels) == len(meta.labels) and notes == meta.annotations:
        return pod
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(meta, labels=labels, annotations=notes))
