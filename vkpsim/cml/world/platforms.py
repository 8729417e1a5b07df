"""The node definitions that a CML 2.9.1 ships, with the simulator's figures for each.

Ids, natures, descriptions, consoles, loopbacks and interface counts are those of a recorded `GET
/simplified_node_definitions` of a 2.9.1; definitions that its site had made are left out. CPU and memory are Cisco's
for the kinds of its reference platform and for those whose definitions Cisco publishes, such as containers and the
Catalyst SD-WAN family; those of IOL are what users of CML 2.9 report; those of TRex, of older Viptela kinds and of some
containers are guesses.
"""

from typing import Any, Final

from vkpsim.cml.world.definitions import Definition, after, by_four, flat

LINUX_DAY0: Final = """\
# this is a shell script which will be sourced at boot
hostname inserthostname_here
# configurable user account
USERNAME=cisco
PASSWORD=cisco
"""
ROUTER_DAY0: Final = "hostname inserthostname_here"
CLOUD_DAY0: Final = "#cloud-config\nhostname: inserthostname_here\nmanage_etc_hosts: True\n"

_GIG: Final = "GigabitEthernet"


def _cisco(name: str, description: str, cpus: int, ram_mib: int, port: Any, **other: Any) -> Definition:
    """Define a Cisco router or switch: a loopback, two consoles, a configuration that can be extracted."""
    facts = {"nature": "router", "loopback": True, "serial_ports": 2, "extracts": True, "boot_timeout_s": 240}
    facts |= {"config_name": "ios_config.txt", "day0": ROUTER_DAY0, "label": description[:32].strip()}
    return Definition(id=name, description=description, cpus=cpus, ram_mib=ram_mib, port=port, **{**facts, **other})


def _linux(name: str, description: str, ram_mib: int = 512, **other: Any) -> Definition:
    """Define a Linux machine: one interface, one console, VNC, a shell script as configuration."""
    facts: dict[str, Any] = {"cpus": 1, "port": flat("eth"), "ports": 1, "vnc": True, "extracts": True}
    facts |= {"config_name": "node.cfg", "day0": LINUX_DAY0, "label": description[:32].strip()}
    return Definition(id=name, description=description, ram_mib=ram_mib, **{**facts, **other})


def _container(name: str, description: str, **other: Any) -> Definition:
    """Define a Docker container: two consoles, four interfaces of which it needs one."""
    facts: dict[str, Any] = {"cpus": 1, "ram_mib": 512, "port": flat("eth"), "serial_ports": 2, "min_ports": 1}
    facts |= {"driver": "DOCKER", "label": description.removesuffix(" (Docker)"), "boot_timeout_s": 30}
    return Definition(id=name, description=description, **{**facts, **other})


def _appliance(name: str, description: str, cpus: int, ram_mib: int, **other: Any) -> Definition:
    """Define a Cisco appliance without a configuration that CML would generate."""
    facts: dict[str, Any] = {"port": flat("eth"), "vnc": True, "boot_timeout_s": 900, "label": description[:32].strip()}
    return Definition(id=name, description=description, cpus=cpus, ram_mib=ram_mib, **{**facts, **other})


_BARE: Final[dict[str, Any]] = {"cpus": None, "ram_mib": None, "licensed": False, "driver": "NONE", "serial_ports": 0}
_BROWSER: Final[dict[str, Any]] = {"nature": "host", "ports": 1, "min_ports": None, "ram_mib": 2048}
_FRR: Final[dict[str, Any]] = {"config_name": "node.cfg", "day0": ROUTER_DAY0, "extracts": True}
_IOSXE: Final[dict[str, Any]] = {"config_name": "iosxe_config.txt", "boot_timeout_s": 250}
_CAT9000: Final[dict[str, Any]] = {**_IOSXE, "nature": "switch", "ports": 25, "min_ports": 9, "boot_timeout_s": 900}
_IOL: Final[dict[str, Any]] = {"driver": "IOL", "serial_ports": 1, "boot_timeout_s": 30, "min_ports": 4}
_NXOS: Final[dict[str, Any]] = {"config_name": "nxos_config.txt", "nature": "switch", "boot_timeout_s": 900}
_XR: Final[dict[str, Any]] = {"config_name": "iosxr_config.txt", "boot_timeout_s": 1200}
_CAT9000_PORT: Final = after(f"{_GIG}0/0", then=flat(f"{_GIG}1/0/", 1))
_NXOS_PORT: Final = after("mgmt0", then=flat("Ethernet1/", 1))
_XR9000_PORT: Final = after("MgmtEth0/RP0/CPU0/0", "donotuse1", "donotuse2", then=flat(f"{_GIG}0/0/0/"))
_ASA_PORT: Final = after("Management0/0", then=flat(f"{_GIG}0/"))

_INFRASTRUCTURE: Final = (
    Definition(
        id="external_connector",
        description="Connect to devices outside of the simulation",
        label="External Connector",
        nature="external_connector",
        port=lambda _: "port",
        ports=1,
        max_ports=1,
        boot_timeout_s=5,
        config_name="default",
        day0="NAT",
        **_BARE,
    ),
    Definition(
        id="unmanaged_switch",
        description="Unmanaged Switch",
        label="Unmanaged Switch",
        nature="switch",
        port=flat("port"),
        ports=8,
        boot_timeout_s=5,
        **_BARE,
    ),
)
_FIREWALLS: Final = (
    _cisco(
        "asav",
        "Cisco Adaptive Security Virtual Appliance",
        1,
        2048,
        _ASA_PORT,
        nature="firewall",
        loopback=False,
        serial_ports=1,
        ports=2,
        vnc=True,
        label="ASAv",
        config_name="day0-config",
    ),
    _appliance("ftdv", "Cisco Firepower Threat Defense Virtual", 4, 8192, nature="firewall", label="FTDv"),
)
_ROUTERS: Final = (
    _cisco("cat-sdwan-edge", "Catalyst SD-WAN Edge", 2, 5120, flat(_GIG, 1), **_IOSXE),
    _cisco("cat8000v", "Catalyst 8000V Edge Software", 1, 4096, flat(_GIG, 1), **_IOSXE),
    _cisco("csr1000v", "Cloud Services Router 1000V", 1, 3072, flat(_GIG, 1), **_IOSXE),
    _container("frr", "Free Range Routing (Docker)", nature="router", ram_mib=256, **_FRR),
    _cisco("iol-xe", "IOL XE Router", 1, 1024, by_four("Ethernet"), **_IOL),
    _cisco(
        "iol-xe-serial-4eth",
        "IOL XE Router with 4 serial interfaces",
        1,
        1024,
        after(*(f"Ethernet0/{slot}" for slot in range(4)), then=by_four("Serial")),
        static_ethernets=4,
        **{**_IOL, "ports": 8, "min_ports": 8},
    ),
    _container("ios-xrd-control-plane", "Cisco IOS XRd (Docker)", nature="router", loopback=True, ram_mib=2048),
    _cisco("iosv", "Cisco IOSv Virtual Router Platform", 1, 512, flat(f"{_GIG}0/"), max_ports=16, label="IOSv"),
    _cisco("iosxe-sdwan", "Cisco IOS XE SD-WAN", 1, 4096, flat(_GIG, 1), **_IOSXE),
    _cisco("iosxrv", "Cisco IOS XRv Router platform", 1, 3072, flat(f"{_GIG}0/0/0/"), serial_ports=3, **_XR),
    _cisco(
        "iosxrv9000",
        "Cisco IOS XRv 9000 Router platform",
        4,
        20480,
        _XR9000_PORT,
        serial_ports=4,
        min_ports=3,
        **_XR,
    ),
    _cisco("pagent", "Cisco IOSv Pagent Platform", 1, 512, flat(f"{_GIG}0/"), max_ports=16),
)
_SWITCHES: Final = (
    _cisco("cat9000v-q200", "Catalyst 9000v Q200", 4, 18432, _CAT9000_PORT, **_CAT9000),
    _cisco("cat9000v-uadp", "Catalyst 9000v UADP", 4, 18432, _CAT9000_PORT, **_CAT9000),
    _cisco(
        "cat9800",
        "Cisco Catalyst 9800 Wireless Controller for Cloud",
        2,
        6144,
        flat(_GIG, 1),
        nature="switch",
        **_IOSXE,
    ),
    _cisco("ioll2-xe", "IOL XE Switch", 1, 1024, by_four("Ethernet"), nature="switch", **_IOL),
    _cisco(
        "iosvl2",
        "Cisco IOSv-L2 Virtual Switch Platform",
        1,
        768,
        by_four(_GIG),
        nature="switch",
        max_ports=16,
    ),
    _cisco("nxosv", 'Cisco NX-OSv "Titanium" Switch', 1, 3072, after("mgmt0", then=flat("Ethernet2/", 1)), **_NXOS),
    _cisco("nxosv9000", "Cisco Nexus 9000v Switch", 2, 12288, _NXOS_PORT, max_ports=64, **_NXOS),
)
_HOSTS: Final = (
    _container("chrome", "Google Chrome stable (Docker)", **_BROWSER),
    _container("firefox", "Firefox (Docker)", **_BROWSER),
    _container("splunk", "Splunk (Docker)", **{**_BROWSER, "ram_mib": 4096}),
    _linux("alpine", "Alpine Linux"),
    _linux("coreos", "CoreOS Container Linux", 2048, config_name="user-data", day0="{}"),
    _linux("desktop", "Alpine Linux with X11 Desktop"),
    _linux("server", "Tiny Core Linux", 128, config_name="iosxe_config.txt"),
    _linux("trex", "Alpine Linux", ports=2, label="TRex"),
    _linux(
        "ubuntu",
        "Ubuntu Cloud Init Platform",
        2048,
        port=flat("ens", 2),
        config_name="user-data",
        day0=CLOUD_DAY0,
        boot_timeout_s=180,
    ),
    _linux("wan_emulator", "WAN Emulator", ports=2, extracts=False),
    _container("dnsmasq", "Dnsmasq server (Docker)"),
    _container("net-tools", "Networking tools node (Docker)", serial_ports=1),
    _container("netflow", "Netflow daemon (Docker)"),
    _container("nginx", "Nginx (Docker)", ports=1, min_ports=None, default_console=1, ram_mib=256),
    _container("radius", "FreeRadius server (Docker)"),
    _container("syslog", "Syslog NG server (Docker)"),
    _container("tacplus", "Tacacs plus (Docker)"),
    _container("thousandeyes-ea", "Cisco ThousandEyes Agent (Docker)", ports=1, ram_mib=2048),
)
_APPLIANCES: Final = (
    _appliance("cat-sdwan-controller", "Cisco Catalyst SD-WAN Controller", 2, 4096),
    _appliance("cat-sdwan-manager", "Cisco Catalyst SD-WAN Manager", 8, 32768),
    _appliance("cat-sdwan-validator", "Cisco Catalyst SD-WAN Validator", 2, 4096),
    _appliance("cat-sdwan-vedge", "Catalyst SD-WAN vEdge", 2, 2048),
    _appliance("fmcv", "Cisco Firepower Management Center Virtual Appliance", 4, 32768, loopback=True, ports=1),
    _appliance("viptela-bond", "Viptela vBond System", 1, 2048, ports=2),
    _appliance("viptela-edge", "Viptela vEdge System", 1, 2048, ports=2),
    _appliance("viptela-manage", "Viptela vManage System", 8, 16384, ports=1),
    _appliance("viptela-smart", "Viptela vSmart System", 1, 2048),
    _appliance("vwlc", "Virtual Wireless LAN Controller (vWLC) platform", 1, 2048, ports=2),
)
_ALL: Final = (*_INFRASTRUCTURE, *_FIREWALLS, *_ROUTERS, *_SWITCHES, *_HOSTS, *_APPLIANCES)

DEFINITIONS: Final = {definition.id: definition for definition in _ALL}
"""The definitions that the simulator ships, by id."""
