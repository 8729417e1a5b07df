"""What the shell completes: `kubectl lablet` through kubectl's own completion, and `kubectl-lablet` by itself.

At each Tab kubectl runs the program `kubectl_complete-lablet` with the words after `kubectl lablet`, the last of them
unfinished, and reads lines `CANDIDATE<tab>DESCRIPTION` and a last line `:DIRECTIVE`
(k8s.io/kubectl/pkg/cmd/plugin/plugin_completion.go). The candidates are click's own, of the commands and their options,
and those of `shared.candidates`.
"""

import sys
from collections.abc import Sequence
from typing import Final

import click
from click.shell_completion import ShellComplete, get_completion_class

from vkprovider.cli.lablet import group

_NO_FILES: Final = 4
_DIRECTIVES: Final = {"plain": _NO_FILES, "file": 0, "dir": 16}
"""Directives of cobra, by what is to be completed: NoFileComp, the default, which offers files, and FilterDirs."""

_PROGRAM: Final = """\
#!/bin/sh
# Completes `kubectl lablet` for kubectl, under the name kubectl_complete-lablet on PATH.
exec kubectl lablet __complete "$@"
"""
_KUBECTLS: Final = {
    "bash": "declare -F __start_kubectl >/dev/null || source <(kubectl completion bash)",
    "zsh": "(( $+functions[_kubectl] )) || source <(kubectl completion zsh)",
    "fish": "functions -q __kubectl_perform_completion; or kubectl completion fish | source",
}
"""Load kubectl's own completion, which completes its plugins, unless it is loaded."""
_SCRIPT: Final = """\
# Completes `kubectl lablet` in {shell}, through kubectl's own completion and the program kubectl_complete-lablet. If
# that is not on PATH: kubectl lablet completion program >~/.local/bin/kubectl_complete-lablet, and chmod +x it.
{kubectl}
{own}"""


def candidates_of(words: Sequence[str]) -> list[str]:
    """Return the lines that kubectl reads for the words after `kubectl lablet`, the last of them unfinished."""
    *before, incomplete = words or [""]
    items = ShellComplete(group.main, {}, "kubectl lablet", "").get_completions(list(before), incomplete)
    lines = [
        f"{item.value}\t{' '.join(item.help.split())}" if item.help else item.value for item in items if item.value
    ]
    kinds = {item.type for item in items} or {"plain"}
    if kinds != {"plain"}:
        lines = []
    return [*lines, f":{min(_DIRECTIVES[kind] for kind in kinds)}"]


def complete() -> None:
    """Answer kubectl: the program `kubectl_complete-lablet`."""
    click.echo("\n".join(candidates_of(sys.argv[1:])))


@click.command(
    "__complete",
    hidden=True,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def answer(words: tuple[str, ...]) -> None:
    """Answer kubectl, where only the plugin itself is on PATH."""
    click.echo("\n".join(candidates_of(words)))


@click.command(epilog="Example: source <(kubectl lablet completion bash)")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish", "program"]))
def completion(shell: str) -> None:
    """Print what makes SHELL complete `kubectl lablet`: commands, options, names of lablets, devices and ports.

    It loads kubectl's own completion, which runs the program kubectl_complete-lablet; pip installs that beside the
    plugin. Where it is missing, as after an installation by krew, `completion program` prints it, to be stored under
    that name in a folder of PATH.
    """
    if shell == "program":
        click.echo(_PROGRAM, nl=False)
        return
    made = get_completion_class(shell)
    assert made is not None  # noqa: S101 (click knows these shells)
    own = made(group.main, {}, group.PROGRAM, group.COMPLETE_VARIABLE).source()
    click.echo(_SCRIPT.format(shell=shell, kubectl=_KUBECTLS[shell], own=own), nl=False)
