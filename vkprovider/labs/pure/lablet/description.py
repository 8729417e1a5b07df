"""A lab's description: the learner before the author's text, for people who look at the list of labs in CML.

Nothing is read from it. The line has a form of its own, so that it is found, and leaves again, whatever else was
written beside it; copies that somebody imports as another topology carry it, too.
"""

import re
from typing import Final

DESCRIPTION_CHARS_MAX: Final = 4096
_LINE: Final = re.compile(r"^Learner: .* \(vkprovider\)\r?$\n?(?:\r?\n)?", re.MULTILINE)
"""The line with the blank one after it."""


def described(description: str, learner: str) -> str:
    r"""Return a lab's description with its learner, and with no other one; "" is nobody.

    A text that leaves no room for the line stays as its author wrote it.

    >>> described("Learner: bob (vkprovider)\n\nOSPF in two areas", "alice")
    'Learner: alice (vkprovider)\n\nOSPF in two areas'
    """
    own = _LINE.sub("", description)
    if not learner:
        return own
    line = f"Learner: {learner} (vkprovider)"
    whole = f"{line}\n\n{own}" if own else line
    return whole if len(whole) <= DESCRIPTION_CHARS_MAX else own
