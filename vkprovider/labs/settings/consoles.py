"""Settings of consoles, as `kubectl attach`, `exec` and `logs` reach them."""

from pydantic import Field

from vkprovider.platform.settings import Group


class ConsoleSettings(Group):
    """Consoles of devices through kubectl."""

    prompts_file: str | None = Field(
        None,
        validation_alias="VKPROVIDER_CONSOLE_PROMPTS",
        description="YAML file of further prompts for `kubectl exec`, by node definition: `{acme-os: ios}`, or "
        "`{acme-fw: {like: asa, prompt: 'fw[>#]'}}`; kinds are ios, iosxe, iosxr, nxos, "
        "asa, firepower, aireos, viptela, frr and linux.",
    )
    exec_timeout_s: float = Field(
        30.0,
        validation_alias="VKPROVIDER_CONSOLE_EXEC_SECONDS",
        gt=0,
        description="Seconds for which a device may be silent during `kubectl exec` before the command ends with 124.",
    )
