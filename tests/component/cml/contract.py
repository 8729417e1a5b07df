"""What our client relies on of a CML controller, step by step: `make contract CML_URL=…` runs it against a real one.

It imports one lab of two alpines under a title that no other lab has, and removes it whatever happens; other labs are
never touched. A step that differs is reported and, unless the rest needs it, does not end the run.
"""

import asyncio
import os
import secrets
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click

from vkprovider.cml.factory import open_session
from vkprovider.cml.operations import BASE, CONSOLES, LABS, MORE
from vkprovider.cml.spi import Credentials, DeviceFact
from vkprovider.cml.worker import CmlLabs
from vkprovider.platform.errors import Invalid, NotFound, OutsideError, VkproviderError
from vkprovider.rest.operations import allow_list

PORTS: Final = {"a": 7998, "b": 7999}
"""Serial ports of the two devices, the last ones of PATty's default range."""
TOPOLOGY: Final = """
lab: {version: 0.1.0, title: vkprovider contract, description: '', notes: made by make contract}
nodes:
- {id: n0, label: a, node_definition: alpine, x: 0, y: 0, configuration: hostname a, tags: ['serial:7998'],
   interfaces: [{id: i0, label: eth0, slot: 0, type: physical}]}
- {id: n1, label: b, node_definition: alpine, x: 200, y: 0, configuration: hostname b, tags: ['serial:7999'],
   interfaces: [{id: i0, label: eth0, slot: 0, type: physical}]}
links: [{id: l0, n1: n0, i1: i0, n2: n1, i2: i0}]
"""
SETTLE_S: Final = 60.0
"""How long a stop or a wipe may take."""


class Differs(Exception):  # noqa: N818 (a finding, not a fault of the program)
    """The controller did not do what the client relies on."""


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one step."""

    step: str
    ok: bool
    detail: str

    def __str__(self) -> str:
        return f"{'ok     ' if self.ok else 'DIFFERS'}  {self.step}{f': {self.detail}' if self.detail else ''}"


@dataclass
class Contract:
    """One run against one controller.

    Attributes:
        labs: The client.
        show: Called with each result.
        boot_s: How long the devices may take to boot.
        title: Of the lab; no other lab has it.
        results: One per step so far.
        lab: The lab's id, once it is imported.
    """

    labs: CmlLabs
    show: Callable[[Result], None]
    boot_s: float = 300.0
    title: str = field(default_factory=lambda: f"vkprovider contract {secrets.token_hex(4)}")
    results: list[Result] = field(default_factory=list)
    lab: str = ""

    async def run(self) -> bool:
        """Carry out all steps and remove the lab; return whether no step differed."""
        try:
            await self._steps()
        finally:
            await self._step("nothing is left behind", self._remove)
        return all(result.ok for result in self.results)

    async def _steps(self) -> None:
        if not await self._step("the version is told without a login", self.labs.version):
            return
        if not await self._step("labs are listed after a login", self._list):
            return
        if not await self._step("a topology is imported under a title", self._import):
            return
        await self._step("a lab that does not exist is NotFound by CML's own words", self._missing)
        await self._step("notes, state and size of the lab", self._look)
        await self._step("the notes are replaced", self._note)
        await self._step("the tags of the devices say their serial ports", self._ports)
        if not await self._step("the devices boot", self._boot):
            return
        await self._step("one request lists the devices of all labs", self._observe)
        await self._step("a running lab is not wiped", lambda: self._refused(self.labs.wipe_lab))
        await self._step("a running lab is not deleted", lambda: self._refused(self.labs.delete_lab))
        await self._step("a second start changes nothing", self._start_again)
        await self._step("the key of a device's screen", self._screen)
        await self._step("configurations are extracted, or refused for the kind of device", self._extract)
        await self._step("the lab is downloaded", self._download)
        if not await self._step("the lab stops", self._stop):
            return
        await self._step("a lab that is stopped but not wiped is not deleted", lambda: self._refused(self._delete))
        await self._step("the lab is wiped", self._wipe)
        await self._step("the lab is deleted, and then NotFound", self._delete_for_good)

    async def _step(self, name: str, act: Callable[[], Awaitable[object]]) -> bool:
        try:
            detail = await act()
        except (VkproviderError, Differs, TimeoutError) as error:
            result = Result(name, ok=False, detail=f"{type(error).__name__}: {error}")
        else:
            result = Result(name, ok=True, detail=str(detail or ""))
        self.results.append(result)
        self.show(result)
        return result.ok

    async def _own(self) -> list[str]:
        """Find the labs of this run by their title: an import without an answer may have made one."""
        return [lab.id for lab in await self.labs.list_labs() if lab.lab_title == self.title]

    async def _until(self, state: str, within_s: float) -> tuple[DeviceFact, ...]:
        facts: tuple[DeviceFact, ...] = ()
        try:
            async with asyncio.timeout(within_s):
                while True:
                    facts = await self.labs.list_devices(self.lab)
                    if {fact.state for fact in facts} == {state}:
                        return facts
                    await asyncio.sleep(0.5)
        except TimeoutError:
            seen = ", ".join(f"{fact.label} is {fact.state}" for fact in facts) or "there are no devices"
            raise Differs(f"not {state} within {within_s:g} s: {seen}") from None

    # the steps

    async def _list(self) -> str:
        return f"{len(await self.labs.list_lab_ids())} labs"

    async def _import(self) -> str:
        self.lab = (await self.labs.import_lab(TOPOLOGY, self.title)).id
        if self.lab not in await self.labs.list_lab_ids():
            raise Differs(f"the new lab {self.lab} is not in the list")
        if (title := (await self.labs.get_lab(self.lab)).lab_title) != self.title:
            raise Differs(f"its title is {title!r}, expected {self.title!r}")
        return self.lab

    async def _missing(self) -> None:
        try:
            await self.labs.get_lab("11111111-1111-4111-8111-111111111111")
        except NotFound:
            return
        raise Differs("it was found")

    async def _look(self) -> None:
        detail = await self.labs.get_lab(self.lab)
        seen = (detail.lab_notes, detail.state, detail.node_count)
        if seen != (wanted := ("made by make contract", "DEFINED_ON_CORE", 2)):
            raise Differs(f"{seen}, expected {wanted}")

    async def _note(self) -> None:
        written, described = "made by make contract\nand changed by it", "described by it"
        await self.labs.note_lab(self.lab, written, described)
        lab = await self.labs.get_lab(self.lab)
        if (found := (lab.lab_notes, lab.lab_description)) != (written, described):
            raise Differs(f"notes and description are {found}, expected {(written, described)}")
        await self.labs.note_lab(self.lab, written)
        if (kept := (await self.labs.get_lab(self.lab)).lab_description) != described:
            raise Differs(f"the description is {kept!r}, expected {described!r}")

    async def _ports(self) -> None:
        ports = await self.labs.get_console_ports(self.lab)
        if ports != PORTS:
            raise Differs(f"{ports}, expected {PORTS}")

    async def _boot(self) -> None:
        await self.labs.start_lab(self.lab)
        facts = await self._until("BOOTED", self.boot_s)
        if {(fact.label, fact.definition) for fact in facts} != {("a", "alpine"), ("b", "alpine")}:
            raise Differs(f"the devices are {facts}")
        if (state := (await self.labs.get_lab(self.lab)).state) != "STARTED":
            raise Differs(f"the lab is {state}")

    async def _observe(self) -> None:
        everything = await self.labs.list_all_devices()
        if set(everything.get(self.lab, ())) != set(await self.labs.list_devices(self.lab)):
            raise Differs(f"it has {everything.get(self.lab, ())} of the lab")

    async def _refused(self, act: Callable[[str], Awaitable[object]]) -> str:
        try:
            await act(self.lab)
        except Invalid as error:
            return f"{error.status} {error}"
        raise Differs("it was accepted")

    async def _start_again(self) -> None:
        await self.labs.start_lab(self.lab)
        await self._until("BOOTED", 5.0)

    async def _screen(self) -> str:
        for fact in await self.labs.list_devices(self.lab):
            try:
                await self.labs.get_vnc_url(self.lab, fact.id)
            except NotFound:
                return "these devices have none"
        return "they have one each"

    async def _extract(self) -> str:
        configs, faults = await self.labs.extract_configs(self.lab, await self.labs.list_devices(self.lab))
        for error in faults.values():
            if not isinstance(error, Invalid):
                raise error
        return f"{len(configs)} extracted, {len(faults)} refused"

    async def _download(self) -> None:
        text = (await self.labs.download_lab(self.lab)).decode()
        if missing := [tag for tag in ("serial:7998", "serial:7999", self.title) if tag not in text]:
            raise Differs(f"{missing} is not in it")

    async def _stop(self) -> None:
        await self.labs.stop_lab(self.lab)
        await self._until("STOPPED", SETTLE_S)

    async def _wipe(self) -> None:
        await self.labs.wipe_lab(self.lab)
        await self._until("DEFINED_ON_CORE", SETTLE_S)

    async def _delete(self, lab: str) -> None:
        await self.labs.delete_lab(lab)

    async def _delete_for_good(self) -> None:
        await self._delete(self.lab)
        try:
            await self.labs.get_lab(self.lab)
        except NotFound:
            return
        raise Differs("it is still there")

    async def _remove(self) -> str:
        """Remove the labs of this run; a step that went wrong may have left one in any state."""
        found = await self._own()
        for lab in found:
            for act in (self.labs.stop_lab, self.labs.wipe_lab, self.labs.delete_lab):
                await self._patiently(act, lab)
        if left := await self._own():
            raise Differs(f"delete by hand: {', '.join(left)}, {self.title!r}")
        return f"{len(found)} removed" if found else ""

    async def _patiently(self, act: Callable[[str], Awaitable[object]], lab: str) -> None:
        """Repeat an act until CML carries it out: it acts later than it answers, and may be busy."""
        for pause_s in (0.5, 1.0, 2.0, 5.0, 10.0, 20.0):
            try:
                return await self._once(act, lab)
            except OutsideError:
                await asyncio.sleep(pause_s)
        return await self._once(act, lab)

    async def _once(self, act: Callable[[str], Awaitable[object]], lab: str) -> None:
        try:
            await act(lab)
        except NotFound:
            return


@asynccontextmanager
async def connected(
    url: str, username: str, password: str, *, verify: bool = True, ca_bundle: str | None = None
) -> AsyncIterator[CmlLabs]:
    """Open the client with everything that it offers."""

    async def read() -> Credentials:
        return Credentials(username, password)

    allow = allow_list((*LABS, *CONSOLES, *MORE), BASE)
    labs = CmlLabs(open_session(url, read, verify=verify, ca_bundle=ca_bundle, allow=allow), url)
    try:
        yield labs
    finally:
        await labs.close()


async def _against(env: Mapping[str, str], ca_bundle: str | None) -> bool:
    verify = env.get("CML_INSECURE", "") in {"", "0"}
    username = env.get("CML_USERNAME") or "admin"
    async with connected(env["CML_URL"], username, env["CML_PASSWORD"], verify=verify, ca_bundle=ca_bundle) as labs:
        contract = Contract(labs, lambda result: click.echo(str(result)), float(env.get("CML_BOOT_SECONDS") or 300))
        return await contract.run()


def main(env: Mapping[str, str]) -> bool:
    """Run against the controller that the environment names; return whether no step differed."""
    if not env.get("CML_URL") or not env.get("CML_PASSWORD"):
        raise click.UsageError("set CML_URL and CML_PASSWORD; also: CML_USERNAME, CML_CA=FILE, CML_INSECURE=1")
    ca_bundle = Path(env["CML_CA"]).read_text() if env.get("CML_CA") else None
    return asyncio.run(_against(env, ca_bundle))


if __name__ == "__main__":
    try:
        sys.exit(0 if main(os.environ) else 1)
    except (click.UsageError, VkproviderError, OSError) as fault:
        sys.exit(f"make contract: {fault}")
