"""configurable-http-proxy, but its traffic is no activity."""

from typing import Any

from jupyterhub.proxy import ConfigurableHTTPProxy


class QuietProxy(ConfigurableHTTPProxy):
    """The proxy for a hub whose servers are labs: only what a learner types is activity, which the spawner reports.

    An open tab keeps its stream and its consoles alive through the proxy, which counts both.
    """

    async def get_all_routes(self) -> dict[str, dict[str, Any]]:
        """Return the routes of the proxy without the time at which each was used."""
        routes: dict[str, dict[str, Any]] = await super().get_all_routes()
        return {spec: {**route, "data": _quiet(route["data"])} for spec, route in routes.items()}


def _quiet(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != "last_activity"}
