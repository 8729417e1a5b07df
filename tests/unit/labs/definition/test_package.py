"""Content packages: what is taken, and what nobody should have zipped (R000-077, R000-078)."""

import io
import stat
import struct
import zipfile
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.support.s3 import package
from tests.support.topologies import topology
from vkprovider.labs.pure.definition import package as packages
from vkprovider.labs.pure.definition.package import Package
from vkprovider.labs.pure.topology import topology as topologies
from vkprovider.labs.pure.topology.devices import devices_for
from vkprovider.labs.settings.services import PackageSettings
from vkprovider.platform.errors import InputError

TEXT = topology({"workstation": "ubuntu", "R1": "iosv"}, tags={"workstation": ["vnc:5066"], "R1": ["serial:5065"]})
GOOD: dict[str, str | bytes] = {
    "cml.yaml": TEXT,
    "grade.xml": '<?xml version="1.0" encoding="UTF-8"?><grade><item points="1">ü</item></grade>',
    "pod.xml": "<pod/>",
    "devices.yaml": "- label: workstation\n  is_user_visible: false\n",
    "version": "1.2.0\n",
    "readme.md": "not read",
}
LIMITS = PackageSettings(package_bytes_max=10**6, unpacked_bytes_max=10**6, file_bytes_max=10**5, files_max=50)


def read(files: dict[str, Any], limits: PackageSettings = LIMITS, *, version: str = "") -> Package:
    return packages.read(package(files), limits, version=version)


def refused(data: bytes | dict[str, Any], limits: PackageSettings = LIMITS) -> str:
    """Reason and message of a package that is refused."""
    raw = data if isinstance(data, bytes) else package(data)
    with pytest.raises(InputError) as caught:
        packages.validate(packages.read(raw, limits))
    return str(caught.value)


def test_package_is_read_whole() -> None:
    found = read(GOOD)
    assert (found.version, found.text) == ("1.2.0", TEXT)
    assert found.files == {name: GOOD[name] for name in ("grade.xml", "pod.xml", "devices.yaml")}
    assert [device.label for device in packages.validate(found).devices] == ["workstation", "R1"]


def test_all_but_the_topology_and_a_version_is_optional() -> None:
    found = read({"cml.yml": TEXT, "VERSION": "7"})
    assert found == Package("7", TEXT, {})
    packages.validate(found)


def test_version_of_the_package_goes_before_that_of_the_store() -> None:
    assert read(GOOD, version="0.9").version == "1.2.0"
    assert read({"cml.yaml": TEXT}, version="0.9").version == "0.9"
    assert "names no version" in refused({"cml.yaml": TEXT})


@pytest.mark.parametrize("version", ["a b", "-1", "latest", "1.0:2", "x" * 129, "1.0\n1.1", "ü", "<html>"])
def test_version_must_be_the_tag_of_an_image(version: str) -> None:
    assert "PackageInvalid: version" in refused(GOOD | {"version": version})


def test_files_may_stand_in_one_folder() -> None:
    """As they do when somebody packs the folder; and macOS adds one of its own."""
    inside = {f"netlab/{name}": content for name, content in GOOD.items()}
    assert read({"__MACOSX/netlab/._cml.yaml": b"\0\5", "netlab/": "", **inside}) == read(GOOD)
    assert "cml.yaml is missing; the package holds" in refused({"readme": "x", **inside})


def test_byte_order_mark_is_no_part_of_the_text() -> None:
    assert read(GOOD | {"cml.yaml": b"\xef\xbb\xbf" + TEXT.encode()}).text == TEXT


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cml.yaml": "a: [\n"}, "TopologyInvalid: invalid YAML at line 2"),
        ({"cml.yaml": "just text"}, "TopologyInvalid: not a CML topology"),
        ({"cml.yaml": "a: &a [x,x]\nb: &b [*a,*a]\nc: [" + "*b," * 101 + "]"}, "aliases, at most 100"),
        ({"cml.yaml": "[" * 5000}, "TopologyInvalid"),
        ({"cml.yaml": TEXT.encode("utf-16")}, "PackageInvalid: 'cml.yaml' is not UTF-8: byte 0"),
        ({"cml.yaml": b"lab: \xfc"}, "'cml.yaml' is not UTF-8: byte 5; save it as UTF-8"),
        ({"cml.yml": TEXT}, "it holds cml.yaml and cml.yml, which mean the same"),
        ({"grade.xml": "<grade>"}, "PackageInvalid: grade.xml is not XML in line 1, column 8"),
        ({"grade.xml": ""}, "grade.xml is not XML"),
        ({"grade.xml": "no xml"}, "grade.xml is not XML"),
        ({"grade.xml": "<a>\0</a>"}, "grade.xml is not XML"),
        ({"grade.xml": "<a>" * 101 + "</a>" * 101}, "grade.xml is not XML: elements are nested more than 100 deep"),
        ({"grade.xml": "<?xml version='1.0' encoding='ISO-8859-1'?><a/>"}, "grade.xml says that it is 'ISO-8859-1'"),
        ({"grade.xml": "<?xml version='1.0' encoding='latin-1'?><a>ü</a>".encode("latin-1")}, "is not UTF-8"),
        ({"pod.xml": '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'}, "pod.xml declares entities"),
        ({"pod.xml": '<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>'}, "pod.xml declares entities or reads other files"),
        ({"pod.xml": "<a>&unknown;</a>"}, "pod.xml is not XML"),
        ({"devices.yaml": "- label: R2\n"}, "devices.yaml [0].label: the topology has no device 'R2'"),
        ({"devices.yaml": "- label: R1\n- label: R1\n"}, "devices.yaml [1].label: 'R1' is in it twice"),
        ({"devices.yaml": "- [R1]\n"}, "devices.yaml [0] must be a mapping"),
        ({"devices.yaml": "R1: {}\n"}, "devices.yaml must be a list"),
        ({"devices.yaml": "- label: R1\n  is_user_visible: 'no'\n"}, "[0].is_user_visible must be a boolean"),
        ({"devices.yaml": "- label: R1\n  node_definition: csr1000v\n"}, "'R1' is a iosv in the topology"),
        ({"devices.yaml": "- label: R1\n  port_tags: ['vnc:1']\n"}, "'R1' has no tag 'vnc:1' in the topology"),
        ({"devices.yaml": "- label: R1\n  colour: red\n"}, "[0] has an unknown field 'colour'"),
        ({"devices.yaml": "- label: R1\n  access_credentials: {}\n"}, "put them into the Secret"),
        ({"devices.yaml": "- label: [R1\n"}, "devices.yaml cannot be read: invalid YAML at line"),
        ({"devices.yaml": "[" * 5000}, "devices.yaml cannot be read"),
    ],
)
def test_bad_file_is_refused_with_its_name(change: dict[str, str | bytes], message: str) -> None:
    assert message in refused(GOOD | change)


def test_device_file_may_be_a_list_or_have_a_heading() -> None:
    text = "devices:\n- {label: R1, node_definition: iosv, port_tags: ['serial:5065'], image_definition: iosv-1}\n"
    for written in (text, "- {label: R1, image_definition: iosv-1}\n"):
        found = packages.validate(read(GOOD | {"devices.yaml": written}))
        assert [device.image for device in found.devices] == [None, "iosv-1"]
    assert packages.validate(read(GOOD | {"devices.yaml": "[]"})) == topologies.parse(TEXT)


def test_device_file_takes_effect() -> None:
    """R000-069: visibility goes before the tags, the image goes into the lab, and nothing else changes."""
    text = topology({"pc": "ubuntu", "db": "server"}, tags={"pc": ["vnc:1"], "db": ["hidden", "serial:2"]})
    plain = packages.validate(Package("1", text))
    file = "- {label: pc, is_user_visible: false, image_definition: desktop-2}\n- {label: db, is_user_visible: true}\n"
    changed = packages.validate(Package("1", text, {"devices.yaml": file}))
    assert [(device.label, device.visible, device.image) for device in changed.devices] == [
        ("pc", False, "desktop-2"),
        ("db", True, None),
    ]
    ports = {"pc_vnc": 10001, "db_serial": 10002}
    assert [device.name for device in devices_for(plain, ports, "10.0.0.1", {})] == ["pc"]
    assert [device.name for device in devices_for(changed, ports, "10.0.0.1", {})] == ["db"]
    before, after = (yaml.safe_load(lab.render(title="t", notes="n", ports=ports)) for lab in (plain, changed))
    before["nodes"][0]["image_definition"] = "desktop-2"
    assert after == before


def billion_laughs() -> str:
    lines = ['<!ENTITY l0 "ha">'] + [f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12)]
    return f"<!DOCTYPE a [{''.join(lines)}]><a>&l11;</a>"


def test_billion_laughs_are_refused_in_xml_and_yaml() -> None:
    assert "grade.xml declares entities" in refused(GOOD | {"grade.xml": billion_laughs()})
    quadratic = f'<!DOCTYPE a [<!ENTITY x "{"x" * 50_000}">]><a>{"&x;" * 10_000}</a>'
    assert "grade.xml declares entities" in refused(GOOD | {"grade.xml": quadratic})
    levels = ["a0: &a0 [ha]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 20)}]" for n in range(1, 20)]
    assert "YAML aliases, at most 100" in refused(GOOD | {"cml.yaml": "\n".join(levels)})
    assert "YAML aliases, at most 100" in refused(GOOD | {"devices.yaml": "\n".join(levels)})


# ------------------------------------------------------------------------------------------- sizes
@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (
            PackageSettings(package_bytes_max=100),
            "at most 100 are allowed; make it smaller, or raise VKPROVIDER_PACKAGE_BYTES",
        ),
        (PackageSettings(files_max=5), "it holds more files, at most 5 are allowed"),
        (PackageSettings(files_max=5), "VKPROVIDER_PACKAGE_FILES_MAX"),
        (PackageSettings(unpacked_bytes_max=200), "VKPROVIDER_PACKAGE_UNPACKED_BYTES_MAX"),
        (PackageSettings(file_bytes_max=100), "'cml.yaml' has more bytes, at most 100 are allowed"),
        (PackageSettings(file_bytes_max=100), "VKPROVIDER_PACKAGE_FILE_BYTES_MAX"),
    ],
)
def test_limit_is_named_with_its_setting(limits: PackageSettings, message: str) -> None:
    said = refused(GOOD, limits)
    assert said.startswith("PackageTooLarge: ")
    assert message in said


def test_package_at_its_limits_is_taken() -> None:
    data = package(GOOD)
    sizes = [len(content.encode() if isinstance(content, str) else content) for content in GOOD.values()]
    limits = PackageSettings(
        package_bytes_max=len(data), unpacked_bytes_max=sum(sizes), file_bytes_max=max(sizes), files_max=len(GOOD)
    )
    assert packages.read(data, limits).version == "1.2.0"


def test_zip_bomb_is_refused_by_what_it_says() -> None:
    bomb = package(GOOD | {"zeros": bytes(2 * 10**6)})
    assert len(bomb) < 10**4
    assert "its files have more bytes, at most 1000000 are allowed" in refused(bomb)


def test_zip_bomb_that_lies_about_its_size_is_not_unpacked() -> None:
    """A megabyte of zeros that says it is a hundred bytes, in both of the zip's directories."""
    data = bytearray(package({"version": "1", "cml.yaml": bytes(10**6)}))
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.rfind(signature)
        struct.pack_into("<I", data, at + offset, 100)
    assert len(data) < 2**20
    assert "PackageInvalid: it is not a zip that can be read: Bad CRC-32" in refused(bytes(data))


def test_hundred_megabytes_of_one_file_are_refused() -> None:
    bomb = package(GOOD | {"grade.xml": b" " * 100 * 10**6})
    assert "its files have more bytes" in refused(bomb)
    roomy = PackageSettings(unpacked_bytes_max=10**9, file_bytes_max=10**5)
    assert "'grade.xml' has more bytes, at most 100000" in refused(bomb, roomy)


def test_million_files_are_counted_before_they_become_objects() -> None:
    many = package({f"{n}": "" for n in range(2000)} | {"cml.yaml": TEXT})
    assert "it holds more files, at most 50 are allowed" in refused(many)


# ------------------------------------------------------------------------------------------- names
@pytest.mark.parametrize(
    "name",
    ["../cml.yaml", "a/../../b", "/etc/passwd", "a//b", "./a", "a\\..\\b", "C:/x", "a/./b", "a\nb", "a\x1b[2Jb"],
)
def test_name_that_leads_out_of_the_package_refuses_all_of_it(name: str) -> None:
    assert "leads out of the package or is none" in refused({**GOOD, name: "x"})


def test_name_with_a_null_byte() -> None:
    data = package(GOOD | {"cml.yamlX.exe": "x"}).replace(b"cml.yamlX.exe", b"cml.yaml\0.exe")
    assert "leads out of the package or is none" in refused(data)


def test_link_is_refused() -> None:
    buffer = io.BytesIO(package({"version": "1"}))
    with zipfile.ZipFile(buffer, "a") as archive:
        link = zipfile.ZipInfo("cml.yaml")
        link.create_system = 3
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    assert "'cml.yaml' is a link; put the file itself there" in refused(buffer.getvalue())


def test_file_that_is_there_twice() -> None:
    buffer = io.BytesIO(package(GOOD))
    with zipfile.ZipFile(buffer, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("cml.yaml", "other: 1")
    assert "'cml.yaml' is in it twice" in refused(buffer.getvalue())


def test_encrypted_file() -> None:
    data = bytearray(package({"cml.yaml": TEXT, "version": "1"}))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.find(signature) + offset] |= 1
    assert "'cml.yaml' is encrypted; make the zip without a password" in refused(bytes(data))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_methods_are_refused(method: int) -> None:
    """Some of them may ask for gigabytes before the first byte."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("cml.yaml", TEXT)
    assert "'cml.yaml' is packed by a method other than deflate" in refused(buffer.getvalue())


# ------------------------------------------------------------------------------------------- damage
@pytest.mark.parametrize("data", [b"", b"PK", b"lab: {}", b"\x1f\x8b" + bytes(100), package(GOOD)[:-30]])
def test_what_is_no_zip(data: bytes) -> None:
    assert "PackageInvalid: it is not a zip that can be read" in refused(data)


@given(st.randoms(use_true_random=False), st.integers(1, 12))
def test_damaged_package_is_refused_or_as_it_was(random: Random, changes: int) -> None:
    data = bytearray(WHOLE)
    for _ in range(changes):
        data[random.randrange(len(data))] = random.randrange(256)
    reason = "none"
    try:
        assert packages.read(bytes(data), LIMITS).text == TEXT
    except InputError as error:
        reason = error.reason
    assert reason in {"none", "PackageInvalid", "PackageTooLarge"}


WHOLE = package(GOOD)


@given(st.binary(max_size=300))
def test_any_bytes_give_a_reason(data: bytes) -> None:
    assert refused(data).startswith("PackageInvalid")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.text(max_size=5) | st.sampled_from(["label", "port_tags", "devices"]), inner)
        ),
        max_leaves=10,
    )
)
def test_any_device_file_gives_a_reason(document: Any) -> None:
    reason = "none"
    try:
        packages.validate(Package("1", TEXT, {"devices.yaml": yaml.safe_dump(document)}))
    except InputError as error:
        reason = error.reason
    assert reason == ("none" if document in ([], {"devices": []}) else "PackageInvalid")
