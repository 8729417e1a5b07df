"""Quotas by user and group, and what fits them (R002-016)."""

import pytest

from vkprovider.portal.pure.config import Amounts, LabQuota, QuotasConfig, amounts_of, fits, quota_of

GIB = 2**30
QUOTAS = QuotasConfig.model_validate(
    {
        "default": {"cpu": "2", "memory": "4Gi"},
        "groups": {"ccna": {"cpu": "8", "memory": "2Gi"}, "ccie": {"cpu": "4", "memory": "64Gi"}, "admins": {}},
        "users": {"mallory": {"spawn": False}, "alice": {"cpu": "1"}},
    }
)


@pytest.mark.parametrize(
    ("user", "groups", "quota"),
    [
        ("bob", [], LabQuota(2000, 4 * GIB)),
        ("bob", ["other"], LabQuota(2000, 4 * GIB)),
        ("bob", ["ccna"], LabQuota(8000, 2 * GIB)),
        ("bob", ["ccna", "ccie"], LabQuota(8000, 64 * GIB)),
        ("bob", ["ccna", "admins"], LabQuota()),
        ("alice", ["ccna"], LabQuota(1000)),
        ("mallory", ["admins"], LabQuota(spawn=False)),
    ],
)
def test_the_most_particular_quota_counts_and_of_groups_the_largest(
    user: str, groups: list[str], quota: LabQuota
) -> None:
    assert quota_of(user, groups, QUOTAS) == quota


@pytest.mark.parametrize(
    ("needed", "quota", "fit"),
    [
        (Amounts(2000, 4 * GIB), LabQuota(2000, 4 * GIB), True),
        (Amounts(2001, 0), LabQuota(2000, None), False),
        (Amounts(0, 4 * GIB + 1), LabQuota(None, 4 * GIB), False),
        (Amounts(10**6, 10**15), LabQuota(), True),
        (Amounts(), LabQuota(spawn=False), False),
    ],
)
def test_a_lab_fits_a_quota(needed: Amounts, quota: LabQuota, *, fit: bool) -> None:
    assert fits(needed, quota) is fit


def test_amounts_are_numbers_and_bytes() -> None:
    """R002-016."""
    found = amounts_of({"cpu": "2500m", "memory": "12Gi"})
    assert (found.cpus, found.memory_bytes) == (2.5, 12 * GIB)
    assert amounts_of({"cpu": "4"}).cpus == 4
    assert amounts_of({}) == amounts_of({"cpu": "much"}) == Amounts()
