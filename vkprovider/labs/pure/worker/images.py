"""The image definitions of a worker as its Node shows them: `status.images`, as a kubelet lists container images.

A kubelet lists its 50 largest images, because the scheduler only prefers Nodes by them. Here whoever reads the list
asks what a worker lacks, so that a part of it would be wrong: it is the whole list, or none.
"""

from collections.abc import Sequence
from typing import Final

from vkprovider.lablet import names

IMAGES_MAX: Final = 1000
_ID_CHARS_MAX: Final = 250


def shown_images(ids: Sequence[str]) -> tuple[str, ...] | None:
    """Return the names that a Node shows, sorted; None if these are too many, or too long, for a Node.

    >>> shown_images(["iosv-159-3-m3", "alpine-3-19"])
    ('cml/alpine-3-19', 'cml/iosv-159-3-m3')
    """
    if len(ids) > IMAGES_MAX or any(len(each) > _ID_CHARS_MAX for each in ids):
        return None
    return tuple(sorted({names.IMAGE_PREFIX + each for each in ids}))
