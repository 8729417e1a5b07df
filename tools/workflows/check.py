"""`python -m tools.workflows.check` names what the workflows want and the checkout lacks; then actionlint judges them.

Looked for are targets of make, paths of the checkout, patterns of `hashFiles` (a key of a cache made of no file never
changes), and jobs that others need. To upgrade actionlint, beside this file:
`go get -tool github.com/rhysd/actionlint/cmd/actionlint@VERSION && go mod tidy`.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from vkpsandbox.controlplane.build import GoModule, ensure_built
from vkpsandbox.controlplane.kept import Progress
from vkpsandbox.errors import SandboxError

ROOT: Final = Path(__file__).parents[2]
SCRIPTS: Final = (".ci/run",)
"""Shell scripts that are read as the workflows' own are."""
WORKFLOWS: Final = (".github/workflows/*.yaml", ".github/actions/*/action.yaml")
PACKAGE: Final = "github.com/rhysd/actionlint/cmd/actionlint"

_HERE: Final = Path(__file__).parent
_MADE: Final = ("build", "dist", ".venv")
"""Folders that commands make: no checkout has them."""
_LISTS: Final = ("working-directory", "cache-dependency-path", "paths", "paths-ignore")
"""Keys of workflows whose values are paths, or patterns of paths."""
_OPERATORS: Final = "();<>|&\n"
_SUBSTITUTION: Final = re.compile(r"\$\(([^()]*)\)")
_TARGET: Final = re.compile(r"[a-z][a-z-]*")
_PATH: Final = re.compile(r"\.?\w[\w.-]*(/[\w.*-]+)+/?|[\w-][\w.-]*\.(md|txt|toml|yaml|lock|json|mod|sum|py)")
_HASHED: Final = re.compile(r"hashFiles\(([^()]*)\)")


def targets(makefile: str) -> set[str]:
    """Return the names of the targets of a Makefile."""
    return set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))


def wanted_targets(script: str) -> set[str]:
    """Return the targets that a shell script makes, also within `$(…)`."""
    found: set[str] = set()
    for command in _commands(script):
        for word in command:
            for inner in _SUBSTITUTION.findall(word):
                found |= wanted_targets(inner)
        if "make" in command:
            found |= {word for word in command[command.index("make") + 1 :] if _TARGET.fullmatch(word)}
    return found


def wanted_paths(script: str) -> set[str]:
    """Return the paths of the checkout that a shell script names, in prose too: they have a slash or a known suffix."""
    words = (part for command in _commands(script) for word in command for part in re.split(r"[\s=,]+", word))
    bare = (word.rstrip(".:").removeprefix("./") for word in words)
    return {word for word in bare if _PATH.fullmatch(word) and word.split("/")[0] not in _MADE}


def _commands(script: str) -> Iterator[list[str]]:
    """Yield the words of each simple command, without comments."""
    lines = re.sub(r"(?m)^\s*#.*$", "", script).replace("\\\n", " ")
    reader = shlex.shlex(lines, posix=True, punctuation_chars=_OPERATORS)
    reader.whitespace, reader.whitespace_split, reader.commenters = " \t\r", True, ""
    command: list[str] = []
    commented = False
    for token in reader:
        if token.strip(_OPERATORS):
            commented = commented or token.startswith("#")
            command += [] if commented else [token]
            continue
        commented = commented and "\n" not in token
        yield command
        command = []
    yield command


def faults_of_script(name: str, script: str, made: set[str], exists: Callable[[str], bool]) -> list[str]:
    """Return a sentence for each thing that a shell script wants and that is not there.

    Args:
        name: Of the script, for the sentences.
        script: Its text.
        made: The targets of the Makefile.
        exists: Tells whether a path, or a pattern of paths, leads to something in the checkout.
    """
    try:
        lacking = sorted(wanted_targets(script) - made)
        lost = sorted(path for path in wanted_paths(script) if not exists(path))
    except ValueError as error:
        return [f"{name}: cannot be read as a shell script: {error}"]
    return [f"{name}: wants `make {target}`, and there is no such target" for target in lacking] + [
        f"{name}: names {path}, and the checkout has no such path" for path in lost
    ]


def faults(name: str, document: Any, made: set[str], exists: Callable[[str], bool]) -> list[str]:
    """Return a sentence for each thing that a workflow, or an action, wants and that is not there.

    Args:
        name: Of the file, for the sentences.
        document: Its content.
        made: The targets of the Makefile.
        exists: Tells whether a path, or a pattern of paths, leads to something in the checkout.
    """
    found = []
    jobs = document.get("jobs", {})
    for job, body in jobs.items():
        needs = body.get("needs", [])
        others = [needs] if isinstance(needs, str) else needs
        lacking = (other for other in others if other not in jobs)
        found += [f"{name}: job {job} needs {other}, and there is no such job" for other in lacking]
    for key, text in _texts(document):
        if key == "run":
            found += faults_of_script(name, re.sub(r"\$\{\{.*?\}\}", "$", text), made, exists)
        paths = [text] if key == "uses" and text.startswith("./") else []
        paths += text.split() if key in _LISTS else []
        paths += [quoted for hashed in _HASHED.findall(text) for quoted in re.findall(r"'([^']*)'", hashed)]
        found += [f"{name}: names {path}, and the checkout has no such path" for path in paths if not exists(path)]
    return found


def _texts(node: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text of a document with the key that it stands under, also in a list."""
    if isinstance(node, dict):
        for name, each in node.items():
            yield from _texts(each, str(name))
    elif isinstance(node, list):
        for each in node:
            yield from _texts(each, key)
    elif isinstance(node, str):
        yield key, node


def faults_of_checkout(root: Path) -> list[str]:
    """Return the sentences for all workflows, actions and scripts of a checkout."""
    made = targets((root / "Makefile").read_text(encoding="utf-8"))

    def exists(path: str) -> bool:
        return any(root.glob(path.removeprefix("!").removeprefix("./")))

    found = []
    for name in SCRIPTS:
        found += faults_of_script(name, (root / name).read_text(encoding="utf-8"), made, exists)
    for path in sorted(path for pattern in WORKFLOWS for path in root.glob(pattern)):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        found += faults(str(path.relative_to(root)), document, made, exists)
    return found


def module() -> GoModule:
    """Return the Go module that actionlint is built from."""
    go_mod, go_sum = (_HERE / "go.mod").read_bytes(), (_HERE / "go.sum").read_bytes()
    version = re.search(rb"^\s*github\.com/rhysd/actionlint (v\S+)", go_mod, re.MULTILINE)
    title = f"actionlint {version[1].decode() if version else 'of an unknown version'}"
    return GoModule("actionlint", title, "20 seconds on 2 cores", go_mod, go_sum, {"actionlint": PACKAGE}, "-s -w")


def ensure_actionlint(on_progress: Progress) -> Path:
    """Return actionlint, building it if it is not cached.

    Raises:
        SandboxError: There is no Go, or the build fails.
    """
    return ensure_built(module(), on_progress) / "actionlint"


def main() -> int:
    """Return the exit code."""
    found = faults_of_checkout(ROOT)
    print("\n".join(found or ["workflows name nothing that is not there"]))
    try:
        program = ensure_actionlint(lambda line: print(line, file=sys.stderr))
    except SandboxError as error:
        # A change of other files needs no Go for this.
        print(f"actionlint judged no workflow: {error}", file=sys.stderr)
        return 1 if found or os.environ.get("CI") else 0
    # Programs that it would ask too are on some machines and not on others, and with them the verdict.
    asked = subprocess.run([program, "-shellcheck=", "-pyflakes="], cwd=ROOT, check=False)  # noqa: S603 (the one that was built)
    return 1 if found else asked.returncode


if __name__ == "__main__":
    sys.exit(main())
