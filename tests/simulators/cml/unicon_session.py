"""Sessions of unicon, the library by which pyATS talks to devices, with consoles; run by `run_judge`.

The argument is JSON: `[{"os": "ios", "platform": "iosv", "host": "r1", "port": 5001}, …]`. On each device: connect,
run a command with a filter, run a long one, configure, read the configuration, disconnect. What unicon returned is
printed as JSON: `{"r1": {"filtered": …, "long": …, "running": …}}`.
"""

import json
import sys
import types
from pathlib import Path
from typing import Any, Final

BRIDGE: Final = Path(__file__).with_name("serial_bridge.py")


def converse(connection: Any, system: str, platform: str, host: str, port: int) -> dict[str, str]:
    """Return what unicon read from one device."""
    device = connection(
        hostname=host,
        start=[f"{sys.executable} {BRIDGE} {port}"],
        os=system,
        platform=platform,
        credentials={"default": {"username": "cisco", "password": "cisco"}, "enable": {"password": "cisco"}},
        connection_timeout=30,
        log_stdout=False,
    )
    device.settings.POST_DISCONNECT_WAIT_SEC = device.settings.GRACEFUL_DISCONNECT_WAIT_SEC = 0
    device.connect()
    try:
        if system == "linux":
            return {"filtered": device.execute("uname -a")}
        answers = {"filtered": device.execute("sh ver | inc ersion"), "long": device.execute("show tech-support")}
        device.configure(["interface Loopback7", "description by unicon", "exit", "banner motd by unicon"])
        device.configure(f"hostname {host}")
        return answers | {"running": device.execute("show running-config")}
    finally:
        device.disconnect()


def stand_in_for_genie() -> None:
    """Let unicon's plugins be imported without Genie, of which one module of theirs names an exception."""
    names = ("genie", "genie.metaparser", "genie.metaparser.util", "genie.metaparser.util.exceptions")
    modules = {name: types.ModuleType(name) for name in names}
    vars(modules[names[-1]])["SchemaEmptyParserError"] = type("SchemaEmptyParserError", (Exception,), {})
    sys.modules.update(modules)


if __name__ == "__main__":
    stand_in_for_genie()
    from unicon import Connection  # (it is only there in a process of `run_judge`)

    found = {
        one["host"]: converse(Connection, one["os"], one["platform"], one["host"], one["port"])
        for one in json.loads(sys.argv[1])
    }
    print(json.dumps(found))  # noqa: T201 (the test reads it)
