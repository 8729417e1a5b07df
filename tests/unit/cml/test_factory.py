import pytest

from vkprovider.cml.factory import open_labs, parse_worker_url
from vkprovider.cml.null import NullLabs, NullWorker
from vkprovider.cml.spi import Credentials
from vkprovider.cml.worker import CmlLabs
from vkprovider.platform.errors import Fenced, InputError, NotFound


async def no_credentials() -> Credentials:
    raise AssertionError("no credentials are needed here")


@pytest.mark.parametrize(
    "url",
    ["https://cml1.example.net", "https://cml1.example.net/", "http://127.0.0.2:8080", "https://[2001:db8::1]:8443"],
)
async def test_a_controller_opens_without_a_request(url: str) -> None:
    labs = open_labs(url, no_credentials)
    assert isinstance(labs, CmlLabs)
    assert not labs.immediate
    await labs.close()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "cml1.example.net",
        "https://",
        "https:///labs",
        "https://:443",
        "null://",
        "ftp://cml1.example.net",
        "https://cml1.example.net/api/v0",
        "https://cml1.example.net?x=1",
        "https://cml1.example.net/#x",
        "https://cml1.example.net:99999",
        "https://cml1.example.net:0",
        "https://cml1.example.net:x",
        "https://[::1",
        "https://cml 1",
    ],
)
def test_a_wrong_url_says_so(url: str) -> None:
    with pytest.raises(InputError, match="for instance https://") as caught:
        parse_worker_url(url)
    assert caught.value.reason == "WorkerUrlInvalid"


def test_a_password_in_the_url_is_not_repeated() -> None:
    with pytest.raises(InputError) as caught:
        parse_worker_url("https://admin:hush-hush@cml1.example.net")
    assert "hush-hush" not in str(caught.value)


@pytest.mark.parametrize(
    "bundle", ["rubbish", "gräßlich", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_a_wrong_ca_bundle_says_so(bundle: str) -> None:
    with pytest.raises(InputError) as caught:
        open_labs("https://cml1.example.net", no_credentials, ca_bundle=bundle)
    assert caught.value.reason == "CaBundleInvalid"


def test_credentials_hide_the_password() -> None:
    credentials = Credentials("admin", "hush-hush")
    assert "hush-hush" not in f"{credentials!r} {credentials}"


async def test_the_null_backend_does_everything_at_once() -> None:
    labs = open_labs("null://life", no_credentials)
    assert labs.immediate
    lab = (await labs.import_lab("lab: {description: d, notes: vkprovider installation=u1}\nnodes: []", "netlab-1")).id
    detail = await labs.get_lab(lab)
    assert (detail.lab_title, detail.lab_notes, detail.lab_description, detail.state) == (
        "netlab-1",
        "vkprovider installation=u1",
        "d",
        "DEFINED_ON_CORE",
    )
    await labs.note_lab(lab, "other", "of alice")
    await labs.note_lab(lab, "others")
    detail = await labs.get_lab(lab)
    assert (detail.lab_notes, detail.lab_description) == ("others", "of alice")
    states = []
    for action in (labs.start_lab, labs.stop_lab, labs.wipe_lab):
        await action(lab)
        (fact,) = (await labs.list_all_devices())[lab]
        assert (fact,) == await labs.list_devices(lab)
        states.append((fact.label, fact.state, (await labs.get_lab(lab)).state))
    assert states == [
        ("n0", "BOOTED", "STARTED"),
        ("n0", "STOPPED", "STOPPED"),
        ("n0", "DEFINED_ON_CORE", "DEFINED_ON_CORE"),
    ]
    await labs.delete_lab(lab)
    assert await labs.list_lab_ids() == []
    for action in (labs.start_lab, labs.stop_lab, labs.wipe_lab, labs.delete_lab):
        with pytest.raises(NotFound):
            await action(lab)


async def test_null_labs_outlive_their_handle() -> None:
    first = open_labs("null://again", no_credentials)
    lab = (await first.import_lab("", "t")).id
    await first.close()
    assert await open_labs("null://again", no_credentials).list_lab_ids() == [lab]
    assert await open_labs("null://other", no_credentials).list_lab_ids() == []


async def test_a_null_worker_has_the_labs_that_the_claims_name() -> None:
    labs = open_labs("null://taken-over", no_credentials)
    gone = (await labs.import_lab("", "t")).id
    labs.recall({"running": True, "imported": False})
    assert {lab: facts[0].state for lab, facts in (await labs.list_all_devices()).items()} == {
        "running": "BOOTED",
        "imported": "DEFINED_ON_CORE",
    }
    with pytest.raises(NotFound):
        await labs.start_lab(gone)


async def test_null_labs_may_have_given_nodes() -> None:
    labs = NullLabs(NullWorker("w", devices=(("r1", "iosv"), ("r2", "iosv"))))
    lab = (await labs.import_lab("", "t")).id
    assert [fact.label for fact in await labs.list_devices(lab)] == ["r1", "r2"]


async def test_a_fenced_null_worker_does_nothing() -> None:
    def guard() -> None:
        raise Fenced("lost")

    worker = NullWorker("w")
    with pytest.raises(Fenced):
        await NullLabs(worker, guard).import_lab("", "t")
    assert not worker.labs
