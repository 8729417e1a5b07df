"""What a portal offers: its menu, quotas, and how long it waits for a lab."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

import yaml
from pydantic import ValidationError

from vkprovider.doctor.findings import Finding, fault, note
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.lablet import names
from vkprovider.platform.messages import sentences
from vkprovider.platform.objects import ConfigMap, CustomResource
from vkprovider.platform.reasons import StartReason
from vkprovider.portal.checks.doors import SETTINGS, restart
from vkprovider.portal.pure import portalnames
from vkprovider.portal.pure.config import LabQuota, PortalConfig, fits, quota_of
from vkprovider.portal.pure.menu import Menu, menu_of, offered_to, owner_of, why_not_offered
from vkprovider.portal.settings import PortalSettings

CONFIG: Final = f"{portalnames.PORTAL_PROGRAM}-config"
"""The ConfigMap with the files that settings name."""
FOLDER: Final = PurePosixPath("/etc/vkprovider/portal")
"""Where the portal has that ConfigMap mounted."""
START_TIMEOUT: Final = "VKPROVIDER_PORTAL_START_TIMEOUT_SECONDS"
STARTS_BESIDE_S: Final = 600
"""How long a start takes beside the time that a device has to boot: its import, its place on a worker."""
_NAMED_MAX: Final = 5


def read_config(path: str, files: ConfigMap | None) -> PortalConfig | str:
    """Return the configuration in a file of a ConfigMap, or why it cannot be used.

    Args:
        path: The file, as the portal sees it; "": everything has its default, as in a folder that is not seen here.
        files: The ConfigMap that is mounted.
    """
    file = PurePosixPath(path)
    if not path or file.parent != FOLDER:
        return PortalConfig()
    text = files.data.get(file.name) if files is not None else None
    if text is None:
        return f"VKPROVIDER_PORTAL_CONFIG is {path}, and the ConfigMap {CONFIG} has no {file.name}"
    try:
        return PortalConfig.model_validate(yaml.safe_load(text) or {})
    except yaml.YAMLError as error:
        return f"{file.name}: {error}"
    except ValidationError as error:
        said = [": ".join([".".join(map(str, each["loc"])), each["msg"]]) for each in error.errors()]
        return f"{file.name}: {'; '.join(said)}"


def check_config(namespace: str, problem: str) -> list[Finding]:
    """Report a file with which no replica starts."""
    remedy = f"kubectl -n {namespace} edit configmap {CONFIG}; then {restart(namespace)}"
    text = f"no replica of the portal starts: {problem}"
    return [fault(f"ConfigMap/{namespace}/{CONFIG}", StartReason.SETTING_INVALID, text, remedy)]


def menu_for(definitions: Sequence[CustomResource], config: PortalConfig) -> Menu:
    """Return the menu of those who are in no class."""
    return menu_of(offered_to(definitions), config)


def check_menu(namespace: str, definitions: Sequence[CustomResource], menu: Menu) -> list[Finding]:
    """Check that something is on the menu.

    Args:
        namespace: The portal's.
        definitions: Those of the cluster.
        menu: What is made of them.
    """
    about, reason = f"Deployment/{namespace}/{portalnames.PORTAL_PROGRAM}", DoctorReason.MENU_EMPTY
    why = {each.metadata.name: why_not_offered(each) or f"is of the class {owner_of(each)}" for each in definitions}
    if menu.images:
        return []
    if not why:
        return [note(about, reason, "it offers no lab: there is no LabletDefinition", "docs/first-lablet.md makes one")]
    text = f"it offers no lab: {sentences([f'{name} {said}' for name, said in why.items()], _NAMED_MAX)}"
    bare = next((name for name, said in why.items() if names.LABEL_FAMILY in said), "")
    unready = next((name for name, said in why.items() if "READY" in said), "")
    if bare:
        remedy = f"kubectl label labletdefinition {bare} {names.LABEL_FAMILY}={bare}"
    elif unready:
        remedy = f"kubectl describe labletdefinition {unready}"
    else:
        remedy = f"Make a definition without {names.LABEL_OWNER_NAMESPACE}, with {names.LABEL_FAMILY}"
    return [note(about, reason, text, remedy)]


def check_quotas(namespace: str, menu: Menu) -> list[Finding]:
    """Check that each quota fits a lab of the menu.

    Args:
        namespace: The portal's.
        menu: With the configuration that has the quotas.
    """
    quotas, found = menu.config.quotas, []
    labs = [lab for image in menu.images for lab in image.sizes.values()]
    each = {"the default quota": quota_of("", (), quotas)}
    each |= {f"the quota of group {name}": quota_of("", [name], quotas) for name in quotas.groups}
    each |= {f"the quota of {name}": quota_of(name, (), quotas) for name in quotas.users}
    for whose, quota in each.items():
        if labs and quota.spawn and not any(fits(lab.amounts, quota) for lab in labs):
            least = min(labs, key=lambda lab: (lab.amounts.cpu_millicores, lab.amounts.memory_bytes))
            needs = f"{least.amounts.cpus} CPU and {least.amounts.memory_bytes >> 20} MiB"
            text = f"{whose} ({_told(quota)}) fits no lab of the menu; the smallest, {least.definition}, needs {needs}"
            remedy = f"kubectl -n {namespace} edit configmap {CONFIG}; then {restart(namespace)}"
            found.append(note(f"ConfigMap/{namespace}/{CONFIG}", DoctorReason.QUOTA_TOO_SMALL, text, remedy))
    return found


def _told(quota: LabQuota) -> str:
    cpu = f"{quota.cpu_millicores / 1000:g} CPU" if quota.cpu_millicores is not None else "any CPU"
    memory = f"{quota.memory_bytes >> 20} MiB" if quota.memory_bytes is not None else "any memory"
    return f"{cpu}, {memory}"


def check_wait(namespace: str, settings: Mapping[str, str], boot_s: Mapping[str, int]) -> list[Finding]:
    """Check that the portal waits for labs as long as a device may take to boot.

    Args:
        namespace: The portal's.
        settings: Those of its ConfigMap, by variable.
        boot_s: How long a device may take to boot, by definition of its menu.
    """
    slowest = max(boot_s, key=lambda name: (boot_s[name], name), default="")
    default_s = PortalSettings().start_timeout_s
    try:
        given_s = float(settings.get(START_TIMEOUT, default_s))
    except ValueError:
        return []  # the portal does not start with it, which is another finding
    if not slowest or given_s >= boot_s[slowest]:
        return []
    most_s = boot_s[slowest]
    text = f"{START_TIMEOUT} is {given_s:.0f}, but a device of {slowest} may boot for {most_s} s: such a lab fails"
    remedy = f"Set {START_TIMEOUT} to {most_s + STARTS_BESIDE_S} or more in that ConfigMap."
    return [fault(f"ConfigMap/{namespace}/{SETTINGS}", DoctorReason.WAIT_TOO_SHORT, text, remedy)]
