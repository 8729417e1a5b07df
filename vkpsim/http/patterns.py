"""Regular expressions in plans and orders."""

import re


def check_pattern(field: str, text: str) -> None:
    """Check an expression while its struct is decoded, so that the decoding error gives its place.

    Raises:
        ValueError: It is not a regular expression.
    """
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{field} {text!r} is not a regular expression: {error}") from error
