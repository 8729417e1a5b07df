"""The name by which people know a learner, beside the user that the cluster knows: how it is read, shown and sorted.

vkprovider.io/shown-name: Müller, Anna

Who assigns a lablet writes it, from a list of the class. It decides nothing: rights and grades are the user's.
"""

import unicodedata
from collections.abc import Mapping
from typing import Final

from vkprovider.lablet import names
from vkprovider.lablet.standing import LabletObject, learner_in

SHOWN_CHARS_MAX: Final = 128
"""The most characters of a name that is shown; what is beyond is cut."""


def tidied(text: str) -> str:
    """Return a name as it is kept and shown: composed, on one line, without what is not printable, and not too long.

    Lists bring marks of direction and widths of nothing along, by which a name could change how a page reads.

    >>> tidied("Mu" + chr(0x308) + "ller," + chr(10) + " Anna" + chr(0x202E))
    'Müller, Anna'
    """
    line = " ".join(unicodedata.normalize("NFC", text).split())
    return "".join(char for char in line if char.isprintable())[:SHOWN_CHARS_MAX].strip()


def name_in(annotations: Mapping[str, str]) -> str:
    """Return the name that annotations of a Pod have for its learner; "" if they have none."""
    text = annotations.get(names.ANNOTATION_SHOWN_NAME, "")
    return tidied(text[: 4 * SHOWN_CHARS_MAX]) if text else ""


def shown_in(pod: LabletObject) -> str:
    """Return the name by which people know the learner of a lablet; "" if there is none, or no learner."""
    return name_in(pod.metadata.annotations) if learner_in(pod) else ""


def with_name(user: str, shown: str) -> str:
    """Return a user with the name that people know, for a sentence.

    >>> with_name("anna", "Müller, Anna"), with_name("anna", "")
    ('anna (Müller, Anna)', 'anna')
    """
    return f"{user} ({shown})" if shown else user


def spoken(shown: str) -> str:
    """Return a name as one addresses somebody.

    >>> spoken("Müller, Anna"), spoken("Anna Müller")
    ('Anna Müller', 'Anna Müller')
    """
    last, _, first = shown.partition(",")
    return f"{first.strip()} {last.strip()}".strip()


def by_last_name(user: str, shown: str) -> tuple[str, str, str]:
    """Return by what a learner is sorted: the last name, the other ones, the user.

    The last name is what stands before a comma; without a comma it is the last word. Who has no name stands by the
    user. Case and accents do not count: Müller stands with Muller.

    >>> by_last_name("anna", "Anna Müller") == by_last_name("anna", "Müller, Anna")
    True
    """
    last, comma, first = shown.partition(",")
    if not comma:
        first, _, last = shown.rpartition(" ")
    return _folded(last or first or user), _folded(first), user


def _folded(text: str) -> str:
    """Return a text without case and accents."""
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in parts if not unicodedata.combining(char)).strip()
