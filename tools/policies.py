"""The parts of admission policies that list annotations, made from the lists of `vkprovider.lablet.names`.

The rest of each policy is written by hand; a generated part stands between two comments.
"""

from pathlib import Path
from typing import Final

from vkprovider.lablet import names

_FOLDER: Final = Path("manifests/policies")
_CHECKOUT: Final = Path(__file__).parents[1]
_BEGIN: Final = "  # Generated from vkprovider/lablet/names.py by `make generate`.\n"
_END: Final = "  # End of what is generated.\n"
_LEARNERS: Final = """\
  - name: has-a-learner
    expression: >-
      {learner} != '' || (oldObject != null &&
      {learner_before} != '')
  variables:
  - name: named
    expression: {learner}
  - name: learner
    expression: "oldObject == null ? '' : {learner_before}"
  - name: before
    expression: "oldObject == null ? '' : {username_before}"
  - name: after
    expression: {username}
"""


def files() -> dict[Path, str]:
    """Render the policies with a generated part: path below the checkout to text."""
    parts = {"reports.yaml": _reports(), "learners.yaml": _learners()}
    return {_FOLDER / name: _filled(_FOLDER / name, part) for name, part in parts.items()}


def _reports() -> str:
    """List the reports that may be carried along or removed; of a learner, a policy of its own says more."""
    listed = ",\n      ".join(f"'{name}'" for name in sorted(names.REPORTS - {names.ANNOTATION_LEARNER}))
    return f"  - name: reports\n    expression: >-\n      [{listed}]\n"


def _learners() -> str:
    def value(of: str, annotation: str) -> str:
        return f"{of}.metadata.?annotations[?'{annotation}'].orValue('')"

    return _LEARNERS.format(
        learner=value("object", names.ANNOTATION_LEARNER),
        learner_before=value("oldObject", names.ANNOTATION_LEARNER),
        username=value("object", names.ANNOTATION_USERNAME),
        username_before=value("oldObject", names.ANNOTATION_USERNAME),
    )


def _filled(path: Path, part: str) -> str:
    """Return a file with its generated part replaced.

    Raises:
        ValueError: The file lacks one of the two comments.
    """
    head, begin, rest = (_CHECKOUT / path).read_text(encoding="utf-8").partition(_BEGIN)
    _, end, tail = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"{path}: a generated part begins with {_BEGIN.strip()!r} and ends with {_END.strip()!r}")
    return head + begin + part + end + tail
