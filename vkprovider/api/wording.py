"""Words of messages: singular and plural."""


def count(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun.

    >>> count(1, "lablet"), count(2, "lablet"), count(0, "policy", "policies")
    ('1 lablet', '2 lablets', '0 policies')
    """
    return f"{number} {singular if number == 1 else plural or singular + 's'}"
