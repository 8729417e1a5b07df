"""`vkprovider doctor`: check a cluster and its workers, one line per fault."""

import asyncio
import os
import sys
from collections.abc import Mapping
from typing import Final

import click
from pydantic import ValidationError

from tunnels.mqtt.broker import Broker
from vkprovider.carriers.broker import broker_of
from vkprovider.carriers.settings import DoctorProcessSettings
from vkprovider.cli.checkup.gather import Doctor
from vkprovider.cli.environment import faults_of
from vkprovider.cli.shared.options import cluster_options
from vkprovider.doctor.findings import DoctorReport, json_of, text_of, unanswered, unchecked
from vkprovider.doctor.rights import SHIPPED_NAMESPACE
from vkprovider.platform import shipped
from vkprovider.platform.errors import InputError, OutsideError, VkproviderError
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.http import auth
from vkprovider.platform.reasons import StartReason
from vkprovider.platform.settings import KubeSettings

_TIMEOUT_S: Final = 10.0


@click.command()
@cluster_options
@click.option(
    "-n",
    "--namespace",
    default=SHIPPED_NAMESPACE,
    show_default=True,
    envvar="VKPROVIDER_NAMESPACE",
    help="Namespace of the provider.",
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--no-probe", is_flag=True, help="Do not query the workers from here; use only the provider's reports.")
def doctor(
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
    output: str,
    no_probe: bool,  # noqa: FBT001 (click passes flags so)
) -> None:
    """Check a cluster and its workers: one line per fault, with the object and the remedy.

    It checks versions, custom resource definitions, rights of the provider, replicas and Leases, clocks, workers
    (reachable, login, version, rights, licence, ports), definitions and pods; the portal (Pods, settings, key,
    certificate, address, bindings, menu, quotas, hub), the program that serves muxes, muxes and relays, where they are
    installed. Nothing is changed. The workers are
    also queried from this machine, with the login in their Secrets; those with `tunnel: mqtt` through their agents, if
    VKPROVIDER_TUNNEL_MQTT_URL and its login are set here as for the provider (kubectl exec deploy/vkprovider).
    Instructors have a check of their own class: kubectl lablet doctor -n NAMESPACE.

    -o json prints one object: context, server, kubernetes, vkprovider, cml (version by worker), exitCode, and findings,
    each with level (fault, unchecked, note), object, reason, message and remedy.

    Exit code 0: healthy; 1: faults; 2: not everything could be checked, and no fault was found.
    """
    try:
        manifest = shipped.manifest("base/rbac.yaml")
    except VkproviderError as error:
        raise click.ClickException(f"the shipped manifests cannot be read: {error}") from None
    report = asyncio.run(_examine(kubeconfig, context, namespace, manifest, probe=not no_probe))
    click.echo(json_of(report) if output == "json" else text_of(report))
    sys.exit(report.exit_code)


async def _examine(
    kubeconfig: str | None, context: str | None, namespace: str, manifest: str, *, probe: bool
) -> DoctorReport:
    name, server = context or "?", ""
    try:
        name = auth.context_of(kubeconfig, context)
        kube = await KubeClient.connect(KubeSettings(kubeconfig=kubeconfig), context=context, timeout_s=_TIMEOUT_S)
        server = kube.server
        try:
            doctor = Doctor(
                kube, context=name, namespace=namespace, manifest=manifest, probe=probe, broker=broker_from(os.environ)
            )
            return await doctor.examine()
        finally:
            await kube.close()
    except InputError as error:
        return DoctorReport(name, server, findings=(unchecked("Kubeconfig", error.reason, error.message),))
    except OutsideError as error:
        return unanswered(name, server, error)


def broker_from(environment: Mapping[str, str]) -> Broker | InputError | None:
    """Return the broker that the settings name; None if they name none, an error if they cannot be used."""
    try:
        mqtt = DoctorProcessSettings.from_environment(environment).mqtt
        return broker_of(mqtt) if mqtt.url else None
    except ValidationError as error:
        return InputError(StartReason.SETTING_INVALID, "; ".join(faults_of(error)))
    except InputError as error:
        return error
