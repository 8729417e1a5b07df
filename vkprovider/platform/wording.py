"""Words of messages: singular and plural, lists of which only the first fit, and texts of tenants."""

from collections.abc import Sequence


def count(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun.

    >>> count(1, "lablet"), count(2, "lablet"), count(0, "policy", "policies")
    ('1 lablet', '2 lablets', '0 policies')
    """
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def listed(texts: Sequence[str], most: int) -> str:
    """Return a list of words, the first of them and how many more there are.

    >>> listed(["a", "b"], 2), listed(["a", "b", "c"], 2)
    ('a, b', 'a, b and 1 more')
    """
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "")


def sentences(texts: Sequence[str], most: int) -> str:
    """Return a list of sentences, the first of them and how many more there are.

    >>> sentences(["a", "b"], 2), sentences(["a", "b", "c"], 2)
    ('a; b', 'a; b; and 1 more')
    """
    more = len(texts) - most
    return "; ".join(texts[:most]) + (f"; and {more} more" if more > 0 else "")


def plain(text: str) -> str:
    """Replace what is not printable: annotations are written by tenants, and a terminal obeys escape sequences.

    >>> plain("a" + chr(27) + "[2J")
    'a�[2J'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
