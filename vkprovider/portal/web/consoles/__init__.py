"""A view of the site: consoles of devices in the browser, with the visitor's own token and no right of the portal.

* `frames`: what goes between a browser's console and the portal: frames, output that waits for a slow browser, and why
  it ends.
* `opening`: which console a visitor opens, as whom, and how.
* `typists`: who types at the consoles of a replica, as far as its own sessions show it.
* `screens`: screens of browsers, which speak VNC through `exec`.
* `routes`: the paths of the view: consoles and screens of devices, their configurations, and which one a path names.
* `captures`: packets of a link: a form begins a capture, and its answer is the file.
* `bridge`: consoles of browsers: each is a WebSocket of a page, and behind it a session of `exec` with the person's own
  token.
"""
