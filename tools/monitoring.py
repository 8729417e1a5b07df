"""Pages and manifests about metrics: made from the table of metrics and from the alert rules."""

import asyncio
import re
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from tools.markdown import NOTE, table
from vkprovider.labs.settings.cluster import Settings
from vkprovider.labs.wiring.provider import provider
from vkprovider.mux.process import mux_process
from vkprovider.mux.settings import MuxProcessSettings
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.events import EventRecorder
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.metrics import Measure
from vkprovider.platform.settings import KubeSettings
from vkprovider.portal.process import portal_process
from vkprovider.portal.settings import PortalProcessSettings

RULES: Final = Path("manifests/monitoring/alerts.yaml")
"""The alert rules, relative to the checkout."""

_LABEL: Final = re.compile(r"\{\{ *\$labels\.(\w+) *\}\}")
_ROOT: Final = Path(__file__).parents[1]

_NOWHERE: Final = """
current-context: nowhere
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: nobody, user: {}}]
"""
"""A kubeconfig for a replica that asks no API server."""

_METRICS: Final = """\
# Metrics

`GET /metrics` of every replica, on `VKPROVIDER_HTTP_PORT`, in Prometheus' text format. Reading costs; counting does
not. Values are those of one replica: add them up over replicas, or take the greatest.

[Alerts](alerts.md) are made of them; `manifests/monitoring` has the rules, a Grafana dashboard, and what a Prometheus
needs to find the replicas.

"""
_OF_MUXES: Final = """
## `vkprovider mux`

The program that serves [muxes](../mux.md) has those of its queue, informers, Leases and requests under the same names,
and these:

"""
_ALERTS: Final = """\
# Alerts

The rules of `manifests/monitoring/alerts.yaml`: what each means, and what to do. Every alert names this page in its
annotation `runbook`. The metrics are those of [metrics.md](metrics.md).
"""
_OF_PORTAL: Final = """
## `vkprovider portal`

The portal of [user labs](../portal.md) has those of its queue, informers and requests under the same names, and these:

"""
_RULE: Final = """
## {alert}

{summary}. Severity {severity}, after {wait}.

{description}

**What to do.** {remedy}

```
{expr}
```
"""


def files() -> dict[Path, str]:
    """Render the files: path below the checkout to text."""
    rules = yaml.safe_load((_ROOT / RULES).read_text(encoding="utf-8"))
    return {
        Path("docs/reference/metrics.md"): metrics_page(),
        Path("docs/reference/alerts.md"): alerts_page(rules),
        Path("manifests/monitoring/operator/prometheusrule.yaml"): prometheus_rule(rules),
    }


def metrics_page() -> str:
    """Describe every metric."""
    note = NOTE.format(source="vkprovider/labs/wiring/metrics and vkprovider/platform/runtime/metrics")
    parts = ((_METRICS, measures()), (_OF_MUXES, mux_measures()), (_OF_PORTAL, portal_measures()))
    return note + "".join(heading + table([*_head(), *map(_row, of)]) for heading, of in parts)


@cache
def measures() -> tuple[Measure, ...]:
    """Return the metrics of a replica, which is built for this and does not run."""
    return asyncio.run(_of_process(lambda ctx: provider(ctx, Settings.from_environment({})).process.measures))


def mux_measures() -> Iterator[Measure]:
    """Yield the metrics that `vkprovider mux` has beside those of every process, which the provider has as well."""
    common = {measure.name for measure in measures()}
    settings = MuxProcessSettings.from_environment({})
    own = asyncio.run(_of_process(lambda ctx: mux_process(ctx, settings).process.measures))
    return (measure for measure in own if measure.name not in common)


def portal_measures() -> Iterator[Measure]:
    """Yield the metrics that `vkprovider portal` has beside those of every process, which the provider has as well."""
    common = {measure.name for measure in measures()}
    settings = PortalProcessSettings.from_environment({})
    own = asyncio.run(_of_process(lambda ctx: portal_process(ctx, settings).process.measures))
    return (measure for measure in own if measure.name not in common)


async def _of_process(measured: Callable[[Context], tuple[Measure, ...]]) -> tuple[Measure, ...]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kubeconfig"
        path.write_text(_NOWHERE, encoding="utf-8")
        kube = await KubeClient.connect(KubeSettings(kubeconfig=str(path)))
    events = EventRecorder(kube, component="vkprovider", instance="none")
    ctx = Context(kube=kube, events=events, installation="none", replica="none", namespace="none")
    try:
        return measured(ctx)
    finally:
        await kube.close()


def _head() -> list[tuple[str, ...]]:
    return [("Metric", "Type", "Labels", "What it is")]


def _row(measure: Measure) -> tuple[str, ...]:
    labels = ", ".join(f"`{label}`" for label in measure.labels)
    return f"`{measure.name}`", measure.kind, labels, measure.help


def alerts_page(rules: dict[str, Any]) -> str:
    """Describe every alert: the runbook that its annotation points to."""
    parts = [NOTE.format(source=RULES), _ALERTS]
    for group in rules["groups"]:
        for rule in group["rules"]:
            notes = rule["annotations"]
            parts.append(
                _RULE.format(
                    alert=rule["alert"],
                    summary=_LABEL.sub(lambda match: match[1].upper(), notes["summary"]),
                    severity=rule["labels"]["severity"],
                    wait=rule["for"],
                    description=notes["description"],
                    remedy=notes["remedy"],
                    expr=rule["expr"].strip(),
                )
            )
    return "".join(parts)


def prometheus_rule(rules: dict[str, Any]) -> str:
    """Wrap the rules for the Prometheus operator."""
    wrapped = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "vkprovider", "namespace": "vkprovider-system"},
        "spec": rules,
    }
    text = yaml.safe_dump(wrapped, sort_keys=False, width=120, allow_unicode=True)
    return f"# Generated by `make generate` from {RULES}.\n{text}"
