"""Calls of CML are counted by operation and by what came of them."""

import pytest

from tests.component.cml.conftest import MiniCml, Secret, drop
from tunnels.base import CertificateInvalid, ConnectFailed, ConnectionLost, DeadlineExceeded, RequestRefused
from vkprovider.cml.factory import CALLS, open_session
from vkprovider.cml.operations import CONSOLES, LABS, MORE, STATS
from vkprovider.cml.worker import CmlLabs
from vkprovider.platform.errors import OutsideError
from vkprovider.rest.exchange import code_of


def counts() -> dict[tuple[str, ...], int]:
    return {key: histogram.count for key, histogram in CALLS.took_s.items()}


def since(before: dict[tuple[str, ...], int]) -> dict[tuple[str, ...], int]:
    return {key: count - before.get(key, 0) for key, count in counts().items() if count != before.get(key, 0)}


async def test_calls_are_counted_without_ids(mini: MiniCml) -> None:
    before = counts()
    labs = CmlLabs(open_session(mini.url, Secret().read), mini.url)
    await labs.version()
    await labs.import_lab("lab: {}", "t")
    with pytest.raises(OutsideError):
        await labs.start_lab("0815")
    mini.replies["/labs"] = drop
    with pytest.raises(OutsideError):
        await labs.list_lab_ids()
    await labs.close()
    assert since(before) == {
        ("system_information", "200"): 1,
        ("log_in", "200"): 1,
        ("import_lab", "200"): 1,
        ("start_lab", "404"): 1,
        ("list_labs", "lost"): 1,
    }


async def test_every_attempt_counts(mini: MiniCml) -> None:
    labs = CmlLabs(open_session(mini.url, Secret().read), mini.url)
    await labs.list_lab_ids()
    before = counts()
    mini.token = "another"
    await labs.list_lab_ids()
    await labs.close()
    assert since(before) == {("list_labs", "401"): 1, ("log_in", "200"): 1, ("list_labs", "200"): 1}


async def test_nothing_but_a_connection_refused(unused_tcp_port: int) -> None:
    before = counts()
    labs = CmlLabs(open_session(f"http://127.0.0.1:{unused_tcp_port}", Secret().read), "http://127.0.0.1")
    with pytest.raises(OutsideError):
        await labs.version()
    await labs.close()
    assert since(before) == {("system_information", "unreachable"): 1}


def test_error_codes_of_requests_without_an_answer() -> None:
    errors = (
        DeadlineExceeded("x"),
        ConnectionLost("x"),
        CertificateInvalid("x", fault="expired"),
        RequestRefused("x"),
        ConnectFailed("x"),
    )
    assert [code_of(each) for each in errors] == ["timeout", "lost", "certificate", "not_allowed", "unreachable"]


def test_every_operation_has_a_name_of_its_own() -> None:
    every = {*LABS, *CONSOLES, *MORE, *STATS}
    assert len({each.name for each in every}) == len(every)
    assert len({(each.method, each.path) for each in every}) == len(every)
    assert not [each for each in every if any(char.isdigit() for char in each.name)]
