"""What a learner reads of a lab, in each of its states."""

from typing import Any

import msgspec
import pytest

from tests.unit.portal.pure.builders import COMPLETE, ENDING, FAILED, NOW, REQUEST, lab, pod
from tests.unit.portal.view.seen import BOOTED, DEFINITION, PORTS, VIA, imported
from vkprovider.lablet import names
from vkprovider.lablet.devices import DeviceState
from vkprovider.lablet.models.status import DefinitionStatus
from vkprovider.lablet.standings import Standing, Tone
from vkprovider.platform.objects import Condition, Container, Pod
from vkprovider.portal.pure import portalnames
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.record import LabOutcome
from vkprovider.portal.pure.view import LabView, command_for, from_pod, from_userlab
from vkprovider.portal.settings import PortalSettings

SETTINGS = PortalSettings()
SCHEDULED = Condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available: 3 Insufficient cpu.")


def seen(found: UserLab, now: float = NOW + 60, definition: DefinitionStatus = DEFINITION) -> LabView:
    return from_userlab(found, definition, [], now, SETTINGS)


def ready(**notes: str) -> Pod:
    return imported(pod(phase="Running", ready=True, username="alice"), BOOTED, **notes)


def booting(**waits: str) -> Pod:
    found = {"lab": "StartingNodes", "r-1": "StartingNodes", "r2": "StartingNodes", **waits}
    return imported(pod(username="alice", devices="1/2", content="1.0@sha256:x"), found)


def states(view: LabView) -> dict[str, str]:
    return {device.label: str(device.state or "") for device in view.devices}


def test_lab_that_waits_in_the_queue() -> None:
    view = seen(lab(REQUEST)._replace(ahead=3))
    assert (view.standing, view.headline, view.tone) == (Standing.WAITING, "Your lab waits to be started", Tone.BUSY)
    assert view.progress is not None
    assert view.progress.sentence == "The lab waits to be started: place 3 in the queue"
    assert [line.text for line in view.progress.lines] == ["Lab asked for: netlab:1.0"]
    assert states(view) == {"R 1": "not started", "sw": "", "r2": "not started"}
    assert not any(device.console for device in view.devices)
    assert view.stop.possible
    assert not any((view.extend.possible, view.reset.possible, view.configurations.possible))
    assert view.console_command == ""


def test_lab_for_which_no_worker_has_room() -> None:
    waits = pod(username="alice")
    waits = msgspec.structs.replace(waits, status=msgspec.structs.replace(waits.status, conditions=[SCHEDULED]))
    view = seen(lab(REQUEST, the_pod=waits))
    assert view.standing is Standing.WAITING
    assert view.progress is not None
    assert view.progress.sentence.startswith("The lab waits for a worker that can take it: 0/3 nodes are available")
    assert view.failure is not None
    assert view.failure.remedy == "Add workers of its environment, or wait until lablets end."


def test_lab_that_boots() -> None:
    view = seen(lab(REQUEST, the_pod=booting(**{"r-1": ""})))
    assert (view.standing, view.headline) == (Standing.BOOTING, "Your lab is starting")
    assert view.progress is not None
    assert (view.progress.percent, view.progress.sentence) == (50, "Devices boot: 1 of 2")
    assert view.progress.lines[-1].text == "The lab is imported"
    assert view.progress.lines[-1].time == "12:00 UTC"
    assert states(view) == {"R 1": "running", "sw": "", "r2": "booting"}
    assert [device.console for device in view.devices] == [True, False, True], "one watches a device boot"
    assert view.failure is None


def test_lab_that_is_ready() -> None:
    view = seen(lab(REQUEST, COMPLETE, the_pod=ready()))
    assert (view.standing, view.headline, view.tone) == (Standing.READY, "Your lab is ready", Tone.GOOD)
    assert view.progress is None
    assert states(view) == {"R 1": "running", "sw": "", "r2": "running"}
    assert (view.end_at, view.ends, view.left) == (NOW + 14_400, "16:00 UTC", "3 h 59 min")
    assert view.extend.possible
    assert view.reset.possible
    assert view.stop.possible
    assert view.configurations.possible
    assert command_for(view, "R 1") == "kubectl --namespace nublado-alice exec -it nb-alice -c lab -- console 'R 1'"


def test_hidden_devices_are_in_no_list_and_in_no_picture() -> None:
    """The switch is: it joins the others."""
    view = seen(lab(REQUEST, COMPLETE, the_pod=ready()))
    assert view.picture is not None
    assert [spot.label for spot in view.picture.spots] == ["R 1", "sw", "r2"]
    assert [(joint.n1, joint.n2) for joint in view.picture.joints] == [("R 1", "sw"), ("sw", "r2")]


def test_ports_are_shown_with_the_address_of_the_worker_or_of_the_mux() -> None:
    view = seen(lab(REQUEST, COMPLETE, the_pod=ready(port_mappings=PORTS, access=VIA)))
    [first, second] = view.devices[2].ports
    assert (first.access, first.port, first.via) == ("serial", 10011, "203.0.113.10:20000")
    assert (second.access, second.address, second.port, second.internal_port) == ("pat", "198.51.100.1", 10012, 22)
    assert view.devices[0].ports == ()


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}'])
def test_ports_that_cannot_be_read_are_none(text: str) -> None:
    assert not any(device.ports for device in seen(lab(REQUEST, COMPLETE, the_pod=ready(port_mappings=text))).devices)


def test_lab_with_another_version_than_the_definition_has_no_picture_of_that() -> None:
    """Devices are those of the Pod, and those that have ports."""
    newer = msgspec.structs.replace(DEFINITION, version="2.0")
    view = seen(lab(REQUEST, COMPLETE, the_pod=ready(port_mappings=PORTS)), definition=newer)
    assert states(view) == {"r-1": "running", "r2": "running"}
    assert len(view.devices[1].ports) == 2


def test_lab_without_containers_for_devices_tells_what_the_lab_tells() -> None:
    """One that an earlier portal made."""
    whole = imported(pod(phase="Running", ready=True, username="alice"), {"lab": ""})
    assert states(seen(lab(REQUEST, COMPLETE, the_pod=whole))) == {"R 1": "running", "sw": "", "r2": "running"}
    broken = imported(pod(phase="Running", username="alice"), {"lab": "Recovering"})
    assert states(seen(lab(REQUEST, COMPLETE, the_pod=broken)))["r2"] == "not known"


def test_device_that_went_off_in_a_lab_that_is_repaired() -> None:
    down = imported(pod(phase="Running", username="alice"), {"lab": "Recovering", "r-1": "", "r2": "DeviceStopped"})
    view = seen(lab(REQUEST, COMPLETE, the_pod=down))
    assert (view.standing, view.headline) == (Standing.REPAIRING, "Your lab is being repaired")
    assert states(view) == {"R 1": "running", "sw": "", "r2": "off"}
    assert view.devices[2].tone is Tone.BAD
    assert [device.console for device in view.devices] == [True, False, False]
    assert view.progress is not None


def test_lab_that_is_reset() -> None:
    again = imported(pod(phase="Running", username="alice", devices="0/2"), dict.fromkeys(BOOTED, "Resetting"))
    view = seen(lab(REQUEST, COMPLETE, the_pod=again))
    assert (view.standing, view.headline) == (Standing.BOOTING, "Your lab is being reset")
    assert view.progress is not None
    assert view.progress.sentence == "Devices boot: 0 of 2"


def test_worker_that_does_not_answer() -> None:
    """Nobody knows how the devices are; the lab goes on, and the page says what to look at."""
    silent = msgspec.structs.replace(
        ready(), status=msgspec.structs.replace(ready().status, container_statuses=[], conditions=[])
    )
    why = Condition("Ready", "False", "WorkerUnreachable", "worker w1 does not answer: timeout")
    silent = imported(silent, BOOTED, why)
    silent = msgspec.structs.replace(silent, status=msgspec.structs.replace(silent.status, conditions=[why]))
    view = seen(lab(REQUEST, COMPLETE, the_pod=silent))
    assert (view.standing, view.headline) == (Standing.UNREACHABLE, "The worker of your lab does not answer")
    assert set(states(view).values()) == {"not known", ""}
    assert view.failure is not None
    assert view.failure.message == "worker w1 does not answer: timeout"


def test_lab_that_is_removed() -> None:
    view = seen(lab(REQUEST, COMPLETE, ENDING, the_pod=ready()))
    assert (view.standing, view.headline) == (Standing.ENDING, "Your lab is being removed")
    assert view.progress is not None
    assert view.progress.lines[0].text == "The lab is to be deleted"
    assert view.devices == ()
    assert not any((view.stop.possible, view.reset.possible, view.extend.possible, view.configurations.possible))


@pytest.mark.parametrize(
    ("by", "reason", "means", "remedy"),
    [
        ("", "NeverOpened", "The user lab was ready, and nobody opened it", "Ask for a lab again."),
        ("", "TimeOver", "The time of the user lab is over", ""),
        ("alice", "DeleteRequested", "", ""),
    ],
)
def test_lab_that_the_portal_removes_by_itself_says_why(by: str, reason: str, means: str, remedy: str) -> None:
    """Who asked for it knows."""
    ending = msgspec.structs.replace(ENDING, by=by, reason=reason)
    failure = seen(lab(REQUEST, COMPLETE, ending, the_pod=ready())).failure
    assert (failure is not None) is bool(means)
    if failure is not None:
        assert failure.means.startswith(means)
        assert failure.remedy == remedy


def test_lab_that_an_instructor_stopped_says_how_it_goes_on() -> None:
    """Its learner may not start it, and must not take a reset for that."""
    stopped = imported(pod(phase="Running", username="alice", state="STOPPED"), dict.fromkeys(BOOTED, "LabStopped"))
    view = seen(lab(REQUEST, COMPLETE, the_pod=stopped))
    assert (view.standing, view.headline) == (Standing.STOPPED, "Your lab is stopped")
    assert states(view) == {"R 1": "off", "sw": "", "r2": "off"}
    assert not view.devices[0].console
    assert view.failure is not None
    assert view.failure.remedy == "Go on with `kubectl lablet start POD`."


def test_lab_that_has_failed_says_why_and_what_to_do() -> None:
    view = seen(lab(REQUEST, FAILED))
    assert (view.standing, view.headline, view.tone) == (Standing.FAILED, "Your lab has failed", Tone.BAD)
    assert view.failure is not None
    assert (view.failure.reason, view.failure.message) == ("StartTimedOut", "too long")
    assert view.failure.means.startswith("The lab was not ready within")
    assert "ask for a lab again" in view.failure.remedy
    assert view.replaceable


def test_lab_whose_pod_failed_has_the_words_of_the_pods_reason() -> None:
    """ "Look that reason up" is what the page does for its reader."""
    text = "StoppedTooLong: stopped for 24 hours"
    told = LabOutcome(id="r1", kind="create", phase="failed", at=NOW, reason="UserLabFailed", text=text)
    view = seen(lab(REQUEST, told))
    assert view.failure is not None
    assert (view.failure.reason, view.failure.message) == ("StoppedTooLong", "stopped for 24 hours")
    assert view.failure.means.startswith("The lablet stayed stopped longer than allowed")


@pytest.mark.parametrize("text", ["", "Error: exit 1", "no colon", "Strange: <script>"])
def test_failure_without_a_known_reason_says_what_was_told(text: str) -> None:
    told = LabOutcome(id="r1", kind="create", phase="failed", at=NOW, reason="UserLabFailed", text=text)
    view = seen(lab(REQUEST, told))
    assert view.failure is not None
    assert (view.failure.reason, view.failure.message) == ("UserLabFailed", text)


def test_record_that_cannot_be_read() -> None:
    view = seen(lab(annotations={portalnames.ANNOTATION_REQUEST: "{"}))
    assert view.standing is Standing.FAILED
    assert view.failure is not None
    assert portalnames.ANNOTATION_REQUEST in view.failure.message


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (NOW + 60, ""),
        (NOW + 20_000, "the time of the lab ended at"),
    ],
)
def test_time_of_a_lab_is_extended_only_while_it_runs(now: float, why: str) -> None:
    view = seen(lab(REQUEST, COMPLETE, the_pod=ready()), now)
    assert view.extend.possible is not bool(why)
    assert why in view.extend.why


# ------------------------------------------------------------------------------------------ lablets of a class


def of_class(found: Pod, learner: str = "bob") -> Pod:
    notes = {**found.metadata.annotations, **({names.ANNOTATION_LEARNER: learner} if learner else {})}
    containers = [Container(each.name, "netlab") for each in found.spec.containers]
    meta = msgspec.structs.replace(found.metadata, annotations=notes)
    return msgspec.structs.replace(
        found, metadata=meta, spec=msgspec.structs.replace(found.spec, containers=containers)
    )


@pytest.mark.parametrize(
    ("found", "learner", "headline"),
    [
        (ready(state="RUNNING"), "bob", "The lab of bob is ready"),
        (booting(), "bob", "The lab of bob is starting"),
        (pod(phase="Failed", reason="DeadlineExceeded"), "bob", "The lab of bob has failed"),
        (
            pod(phase="Succeeded", reason="Passed", message="score 83 of 100"),
            "bob",
            "The work of bob has passed",
        ),
        (pod(phase="Pending", deleted=True), "bob", "The lab of bob is being removed"),
        (imported(pod(phase="Running", ready=True), BOOTED), "", "This lab is ready"),
    ],
)
def test_lablet_of_a_class_reads_alike(found: Pod, learner: str, headline: str) -> None:
    if not learner:
        notes = {key: text for key, text in found.metadata.annotations.items() if "username" not in key}
        found = msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, annotations=notes))
    view = from_pod(of_class(found, learner), DEFINITION, [], NOW + 60)
    assert view.headline == headline
    assert view.name == learner


def test_lablet_of_a_class_without_a_version_shows_that_of_its_content() -> None:
    view = from_pod(of_class(booting()), DEFINITION, [], NOW + 60)
    assert view.definition == "netlab:1.0"
    assert states(view) == {"R 1": "booting", "sw": "", "r2": "booting"}


def test_what_tenants_write_is_printable() -> None:
    found = of_class(ready(), "b\x1b[2Job\u202e")
    view = from_pod(found, DEFINITION, [], NOW)
    assert view.headline == "The lab of b\N{REPLACEMENT CHARACTER}[2Job\N{REPLACEMENT CHARACTER} is ready"


@pytest.mark.parametrize("state", list(DeviceState))
def test_every_state_of_a_device_is_a_word(state: Any) -> None:
    assert state.value.replace(" ", "").isalpha()
