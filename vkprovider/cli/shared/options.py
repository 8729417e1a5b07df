"""The options that commands of `kubectl lablet` share, as kubectl has them.

@place_options               -n, --context, --kubeconfig    → place=Place(…)
@scope_options               the same and -A, -l, --field-selector, for commands that list    → scope=Scope(…)
@context_options             --context and --kubeconfig alone, for what has no namespace    → place=Place(…)
@chosen_options              POD…, -u, -l and those of a place, for commands that act    → chosen=Chosen(…)

What they are passed as is imported when a command runs, because that needs a client of the Kubernetes API.
"""

import functools
from collections.abc import Callable
from typing import Any, Final

import click

from vkprovider.cli.shared import candidates
from vkprovider.cli.shared.times import duration


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--kubeconfig` and `--context`."""
    context = click.option(
        "--context",
        metavar="CONTEXT",
        shell_complete=candidates.contexts,
        help="Kubeconfig context (default: current).",
    )
    kubeconfig = click.option(
        "--kubeconfig",
        metavar="PATH",
        shell_complete=candidates.files,
        help="Kubeconfig file (default: KUBECONFIG, else ~/.kube/config).",
    )
    return kubeconfig(context(command))


Command = Callable[..., Any]
OUTPUTS: Final = ("table", "wide", "json", "yaml", "csv", "name")


def output_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `-o` for a list; pass it as `output`."""
    return click.option(
        "-o", "--output", type=click.Choice(OUTPUTS), default="table", show_default=True, help="Output format."
    )(command)


def document_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `-o` for the outcome of one act; pass it as `output`."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["text", "json", "yaml"]),
        default="text",
        show_default=True,
        help="Output format.",
    )(command)


START_WAIT: Final = "40m"
"""How long a command waits for a lab to start."""


def timeout_option(default: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Add `--timeout`, and pass it as `timeout_s`."""
    return click.option(
        "--timeout",
        "timeout_s",
        callback=duration,
        default=default,
        show_default=True,
        metavar="DURATION",
        help="How long to wait: 90s, 5m.",
    )


def wait_options(command: Command) -> Command:
    """Add `--wait` and `--timeout`, and pass them as `wait` and `timeout_s`."""
    return click.option("--wait", is_flag=True, help="Wait for completion.")(timeout_option("5m")(command))


def start_options(command: Command) -> Command:
    """Add the same to a command that starts a lab, which may take as long as the provider lets it boot, and longer."""
    return click.option("--wait", is_flag=True, help="Wait for completion.")(timeout_option(START_WAIT)(command))


def selector_option(text: str) -> Callable[[Command], Command]:
    """Add `-l`."""
    return click.option("-l", "--selector", metavar="SELECTOR", default="", help=text)


def _namespace_option(command: Command) -> Command:
    return click.option(
        "-n",
        "--namespace",
        metavar="NAMESPACE",
        shell_complete=candidates.namespaces,
        help="Namespace (default: the context's).",
    )(command)


def context_options(command: Command) -> Command:
    """Add `--kubeconfig` and `--context`, and pass them as `place`."""

    def with_place(*args: Any, kubeconfig: str | None, context: str | None, **options: Any) -> Any:
        from vkprovider.cli.shared.place import Place  # noqa: PLC0415 (see above)

        return command(*args, place=Place(kubeconfig, context), **options)

    return cluster_options(wrapped(with_place, command))


def place_options(command: Command) -> Command:
    """Add `--namespace`, `--kubeconfig` and `--context`, and pass them as `place`."""

    def with_place(
        *args: Any, kubeconfig: str | None, context: str | None, namespace: str | None, **options: Any
    ) -> Any:
        from vkprovider.cli.shared.place import Place  # noqa: PLC0415 (see above)

        return command(*args, place=Place(kubeconfig, context, namespace), **options)

    return _namespace_option(cluster_options(wrapped(with_place, command)))


def scope_options(command: Command) -> Command:
    """Add the options of `place_options`, and those that select Pods, and pass them as `scope`."""

    def with_scope(*args: Any, all_namespaces: bool, selector: str, field_selector: str, **options: Any) -> Any:
        from vkprovider.cli.shared.place import Scope  # noqa: PLC0415 (see above)

        place = options.pop("place")
        return command(*args, scope=Scope(place, all_namespaces, selector, field_selector), **options)

    selected = place_options(wrapped(with_scope, command))
    everywhere = click.option("-A", "--all-namespaces", is_flag=True, help="In all namespaces; -n does not count then.")
    fields = click.option(
        "--field-selector", metavar="SELECTOR", default="", help="Field selector, such as spec.nodeName=vnode.cml-1."
    )
    return everywhere(selector_option("Label selector, such as class=monday.")(fields(selected)))


def chosen_options(command: Command) -> Command:
    """Add the argument POD…, `-u`, `-l` and the options of a place, and pass them as `chosen`.

    A command that has an option `every` besides may be called for all lablets of the namespace.
    """

    def with_chosen(
        *args: Any, pods: tuple[str, ...], learners: tuple[str, ...], selector: str, every: bool = False, **options: Any
    ) -> Any:
        from vkprovider.cli.shared.batch import chosen  # noqa: PLC0415 (see above)

        found = chosen(pods, learners, selector, options.pop("place"), every=every)
        return command(*args, chosen=found, **options)

    placed = place_options(wrapped(with_chosen, command))
    argument = click.argument("pods", metavar="[POD…]", nargs=-1, shell_complete=candidates.lablets)
    learners = learners_option("The lablet of this learner; may be repeated.")
    return argument(learners(selector_option("All lablets that this label selector selects.")(placed)))


def learner_option(command: Command) -> Command:
    """Add `-u`, which names one lablet by its learner; pass it as `learner`."""
    return click.option(
        "-u",
        "--learner",
        metavar="LEARNER",
        shell_complete=candidates.learners,
        help="The lablet of this learner, instead of POD.",
    )(command)


def learners_option(text: str) -> Callable[[Command], Command]:
    """Add `-u`, which may be repeated; pass it as `learners`."""
    return click.option(
        "-u",
        "--learner",
        "learners",
        metavar="LEARNER",
        multiple=True,
        shell_complete=candidates.learners,
        help=text,
    )


def portal_option(command: Command) -> Command:
    """Add `--portal`, the address of the portal as browsers open it; pass it as `portal`."""
    return click.option(
        "--portal",
        metavar="URL",
        envvar="VKPROVIDER_PORTAL_URL",
        help="URL of the portal, as a browser opens it, for links (default: VKPROVIDER_PORTAL_URL).",
    )(command)


def wrapped(wrapper: Command, command: Command) -> Command:
    """Give a wrapper the name, help and parameters of the command that it wraps, without its signature."""
    functools.update_wrapper(wrapper, command, updated=())
    del wrapper.__wrapped__  # type: ignore[attr-defined]
    wrapper.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    return wrapper
