"""A view of the site: consoles of devices in the browser, with the visitor's own token and no right of the portal.

* `frames`: what goes between browser and portal, and how much of it was not shown yet; `backlog`: what waits for the
  browser; `words`: why a console does not open, or has ended. Pure.
* `upstream`: a console through the API server; `bridge`: the open consoles of browsers.
* `configurations`: those of all devices of a lab, in one archive, for a few visitors at a time.
* `places`: which lab a path names, and who may see it; `routes`: the paths.
"""
