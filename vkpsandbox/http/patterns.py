"""Regular expressions that somebody wrote into a plan or an order."""

import re


def check_pattern(field: str, text: str) -> None:
    """Check an expression when the struct that holds it is made, so that whoever reads it in says where it stands.

    Raises:
        ValueError: It is none.
    """
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{field} {text!r} is no regular expression: {error}") from error
