"""What the shell offers for an argument: the names that the cluster or the kubeconfig has, as kubectl reads them.

A shell waits for the answer at each Tab: each function asks kubectl, which is there and starts at once, within a short
deadline, and offers nothing when that fails.
"""

import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from vkprovider.classroom.pods import LabletPod

_DEADLINE_S: Final = 5.0
"""The deadline of all questions of one Tab."""
Found = Mapping[str, str]
"""A candidate, and what is said beside it."""


def files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer files: the shell knows them."""
    return [CompletionItem(incomplete, type="file")]


def folders(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer folders: the shell knows them."""
    return [CompletionItem(incomplete, type="dir")]


def contexts(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the contexts of the kubeconfig."""
    return _offered(dict.fromkeys(_kubectl(ctx, "config", "get-contexts", "-o", "name").split(), ""), incomplete)


def namespaces(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the cluster's namespaces."""
    return _offered(_named(ctx, "namespaces"), incomplete)


def lablets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the lablets of the namespace; one that is named already is not offered again."""
    kind = "pod/" if incomplete.startswith("pod/") else ""
    done = _named_before(ctx, param)
    found = {pod.metadata.name: _about(pod) for pod in _pods(ctx) if pod.is_lablet}
    offered = _offered(found, incomplete.removeprefix(kind))
    return [CompletionItem(f"{kind}{item.value}", help=item.help) for item in offered if item.value not in done]


def learners(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the learners who have a lablet; one that is named already is not offered again."""
    done = _named_before(ctx, param)
    theirs = [pod for pod in _pods(ctx) if pod.is_lablet and pod.user and pod.user not in done]
    found = {pod.user: f"{pod.metadata.name} {pod.shown}".strip() for pod in theirs}
    return _offered(found, incomplete)


def lablets_or_devices(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the lablets of the namespace, or the devices of the lablet of the learner who is named, or of a class."""
    selected = any(ctx.params.get(name) for name in ("learner", "learners", "selector"))
    return (devices if selected else lablets)(ctx, param, incomplete)


def lablets_and_pools(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the lablets of the namespace, and the Deployments of its pools."""
    pools = {f"deployment/{name}": text for name, text in _named(ctx, "deployments.apps").items()}
    return lablets(ctx, param, incomplete) + _offered(pools, incomplete)


def lablets_or_links(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the lablets of the namespace, or the links of the lablet of the learner who is named."""
    return (links if ctx.params.get("learner") else lablets)(ctx, param, incomplete)


def links(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the links of the lablet that is named before, by the devices that they join."""
    found: dict[str, str] = {}
    for pod in _lablet(ctx):
        definition = pod.spec.runtime_class_name
        said = _read(ctx, lambda item: item["status"]["links"], "labletdefinitions", definition)
        found |= {f"{each['n1']}-{each['n2']}": "" for links in said for each in links}
    return _offered(found, incomplete)


def devices(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the devices of the lablet that is named before."""
    found: dict[str, str] = {}
    for pod in _lablet(ctx):
        definition = pod.spec.runtime_class_name
        said = _read(ctx, lambda item: item["status"]["devices"], "labletdefinitions", definition)
        labels = [device["label"] for devices in said for device in devices]
        found |= dict.fromkeys(labels or [container.name for container in pod.spec.containers[1:]], "")
    return _offered(found, incomplete)


def ports(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the ports that can be forwarded of the lablet that is named before."""
    from vkprovider.cli.shared.pods import ports_of  # noqa: PLC0415 (help and options need no Pod)

    try:
        found = [port for pod in _lablet(ctx) for port in ports_of(pod, {})]
    except click.ClickException:
        return []
    return _offered({port.name: f"{port.device} {port.access}" for port in found if port.can_be_forwarded}, incomplete)


def workers(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the CMLWorkers that await approval."""
    from vkprovider.lablet import names  # noqa: PLC0415 (as above)

    def waiting(item: Any) -> str:
        meta = item["metadata"]
        return str(meta["name"]) if meta["annotations"][names.ANNOTATION_APPROVED] == "false" else ""

    return _offered(dict.fromkeys(filter(None, _read(ctx, waiting, "cmlworkers")), ""), incomplete)


def definitions(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the LabletDefinitions."""
    found = _read(
        ctx, lambda item: (item["metadata"]["name"], item["spec"].get("version", "")), "labletdefinitions.vkprovider.io"
    )
    return _offered(dict(found), incomplete)


def _named_before(ctx: click.Context, param: click.Parameter) -> set[str]:
    """Return the values that an argument or option which may be repeated has already."""
    values = ctx.params.get(param.name or "")
    return set(values) if isinstance(values, tuple | list) else set()


def _kubectl(ctx: click.Context, *words: str) -> str:
    """Return kubectl's output for the cluster of the options; nothing if it fails or takes too long."""
    end_s: float = ctx.meta.setdefault(f"{__name__}.end_s", time.monotonic() + _DEADLINE_S)
    named = [f"--{name}={value}" for name in ("kubeconfig", "context") if (value := ctx.params.get(name))]
    try:
        done = subprocess.run(  # noqa: S603 (no shell; the words are ours)
            ["kubectl", *named, *words],  # noqa: S607 (the user's own, as found on PATH)
            stdin=subprocess.DEVNULL,  # or it would ask for a name and a password
            capture_output=True,
            timeout=max(0.0, end_s - time.monotonic()),
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode(errors="replace")


def _get(ctx: click.Context, *words: str) -> str:
    """Return the output of `kubectl get` in the namespace of the options."""
    namespace = ctx.params.get("namespace")
    return _kubectl(ctx, "get", *([f"--namespace={namespace}"] if namespace else []), *words)


def _named(ctx: click.Context, kind: str) -> Found:
    """Return the names of a kind's objects."""
    return {line.rpartition("/")[2]: "" for line in _get(ctx, kind, "-o", "name").split()}


def _read(ctx: click.Context, field: Callable[[Any], Any], *words: str) -> list[Any]:
    """Return the words that a function finds in the objects; it may find none in one."""
    import json  # noqa: PLC0415 (10 ms; help and options read none)

    try:
        document = json.loads(_get(ctx, *words, "-o", "json"))
    except ValueError:
        return []
    found = []
    for item in document.get("items", [document]):
        try:
            found.append(field(item))
        except (KeyError, TypeError):
            continue
    return found


def _pods(ctx: click.Context, *which: str) -> "Iterable[LabletPod]":
    """Return the Pods of the namespace, the one of a name, or those of a selector."""
    import msgspec  # noqa: PLC0415 (as above)

    from vkprovider.classroom.pods import LabletPod  # noqa: PLC0415 (as above)

    def decoded(item: Any) -> LabletPod | None:
        try:
            return msgspec.convert(item, LabletPod)
        except msgspec.ValidationError:
            return None

    return filter(None, _read(ctx, decoded, "pods", *which))


def _lablet(ctx: click.Context) -> "list[LabletPod]":
    """Return the lablet that is named before, by its Pod or its learner, as a list; empty if none is.

    Of several learners, and of those that a label selects, it is the first.
    """
    from vkprovider.cli.shared.pods import named, of_learner  # noqa: PLC0415 (as above)

    if selector := ctx.params.get("selector"):
        return [pod for pod in _pods(ctx, f"--selector={selector}") if pod.is_lablet][:1]
    learner = ctx.params.get("learner") or next(iter(ctx.params.get("learners") or ()), None)
    try:
        wanted = named(None, str(learner)) if learner else named(ctx.params.get("pod"), None)
        found = list(_pods(ctx, wanted.name)) if wanted.kinds != "learner" else []
        if not found and wanted.kinds != "pod" and (mine := of_learner(list(_pods(ctx)), wanted.name)) is not None:
            found = [mine]
    except click.ClickException:
        return []
    return found


def _about(pod: "LabletPod") -> str:
    from vkprovider.lablet import names  # noqa: PLC0415 (as above)

    return f"{pod.metadata.annotations.get(names.ANNOTATION_STATE, 'PENDING')} {pod.user}".strip()


def _offered(found: Found, incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(name, help=text or None) for name, text in sorted(found.items()) if name.startswith(incomplete)
    ]
