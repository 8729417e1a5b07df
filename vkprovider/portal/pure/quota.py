"""What a user may have: the quota of the configuration, and whether a lab fits it."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from vkprovider.platform import quantities
from vkprovider.portal.pure.config import QuotaConfig, QuotasConfig


class Amounts(NamedTuple):
    """What a lab needs of its worker."""

    cpu_millicores: int = 0
    memory_bytes: int = 0

    @property
    def cpus(self) -> float:
        """CPU as the number of answers: `4`, `0.5`."""
        whole, rest = divmod(self.cpu_millicores, 1000)
        return self.cpu_millicores / 1000 if rest else whole


class LabQuota(NamedTuple):
    """The most that the lab of a user may need.

    Attributes:
        cpu_millicores, memory_bytes: None without a bound.
        spawn: Whether the user may have a lab at all.
    """

    cpu_millicores: int | None = None
    memory_bytes: int | None = None
    spawn: bool = True


def amounts_of(quantity_of: Mapping[str, str]) -> Amounts:
    """Return the amounts of a RuntimeClass's overhead; one that cannot be read is 0, as it is for the scheduler.

    >>> amounts_of({"cpu": "2500m", "memory": "4Gi", "vkprovider.io/ports": "3"})
    Amounts(cpu_millicores=2500, memory_bytes=4294967296)
    """
    try:
        cpu = quantities.parse_millicores(quantity_of.get("cpu", "0"))
        return Amounts(cpu, quantities.parse_bytes(quantity_of.get("memory", "0")))
    except ValueError:
        return Amounts()


def quota_of(user: str, groups: Collection[str], quotas: QuotasConfig) -> LabQuota:
    """Return the quota of a user: the user's own, else the largest of the user's groups, else the default."""
    if user in quotas.users:
        return _quota(quotas.users[user])
    theirs = [_quota(quotas.groups[group]) for group in groups if group in quotas.groups]
    if not theirs:
        return _quota(quotas.default)
    return LabQuota(
        _largest(quota.cpu_millicores for quota in theirs),
        _largest(quota.memory_bytes for quota in theirs),
        any(quota.spawn for quota in theirs),
    )


def fits(needed: Amounts, quota: LabQuota) -> bool:
    """Return whether a lab that needs this much is within the quota."""
    cpu, memory = quota.cpu_millicores, quota.memory_bytes
    return (
        quota.spawn
        and (cpu is None or needed.cpu_millicores <= cpu)
        and (memory is None or needed.memory_bytes <= memory)
    )


def _quota(config: QuotaConfig) -> LabQuota:
    return LabQuota(
        quantities.parse_millicores(config.cpu) if config.cpu is not None else None,
        quantities.parse_bytes(config.memory) if config.memory is not None else None,
        config.spawn,
    )


def _largest(amounts: Iterable[int | None]) -> int | None:
    """Return the largest amount; one without a bound is larger than any."""
    found = list(amounts)
    return None if None in found else max(amount for amount in found if amount is not None)
