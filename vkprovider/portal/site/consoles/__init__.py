"""A view of the site: consoles of devices in the browser.

* `routes`: the paths.
"""
