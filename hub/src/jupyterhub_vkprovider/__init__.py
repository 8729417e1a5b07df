"""A JupyterHub spawner whose servers are labs of vkprovider's portal.

* `stream`: server-sent events, from bytes. `dialects`: the meaning of events and of a lab's status. `story`: the events
  of the hub's progress page. `refusals`: the portal's no, for a learner. `activity`: of learners. All pure.
* `service`: requests to the portal. `errors`: errors that JupyterHub shows.
* `progress`: the story of a lab, for all who listen to it.
* `following`: an operation of the portal, from its stream to its end.
* `spawner`: the class that JupyterHub calls; `proxy`: configurable-http-proxy, whose traffic is no activity.
* `templates`: the hub's home and spawn page with the way to the portal's pages; a hub names the folder, `TEMPLATES`, in
  its `template_paths`.
"""

from pathlib import Path
from typing import Final

TEMPLATES: Final = str(Path(__file__).parent / "templates")
"""The folder for `c.JupyterHub.template_paths`."""
