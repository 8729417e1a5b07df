"""`$(NAME)` in the value of a variable, by Kubernetes' rules (k8s.io/kubernetes/third_party/forked/golang/expansion).

`$(NAME)` is the value of an earlier variable, and stays as it is if there is none; `$$` is one `$`, so that `$$(NAME)`
yields `$(NAME)`. A name ends at the first closing bracket, whatever stands before it.
"""

from collections.abc import Mapping


def expand(text: str, values: Mapping[str, str], *, chars_max: int) -> str:
    """Return a text with the values of the variables that it names; in linear time.

    Raises:
        ValueError: The result has more than `chars_max` characters.
    """
    parts: list[str] = []
    at, room, closes = 0, chars_max, True
    while (found := text.find("$", at)) >= 0 and found + 1 < len(text):
        before, after = text[at:found], text[found + 1]
        end = text.find(")", found) if closes and after == "(" else -1
        if end >= 0:
            name = text[found + 2 : end]
            part, at = values.get(name, f"$({name})"), end + 1
        else:
            closes = closes and after != "("  # no later one is closed either
            part, at = "$" if after == "$" else f"${after}", found + 2
        room -= len(before) + len(part)
        if room < 0:
            break
        parts += (before, part)
    rest = text[at:]
    if room < len(rest):
        raise ValueError(f"more than {chars_max} characters")
    return "".join((*parts, rest))
