"""`vkprovider demo`: one program of parts on a sandbox, each of which checks what it shows.

* `stage`: the sandbox for the time of a demo, its parts one after the other, how they tell what they do, and `Play`:
  which parts there are. `terminal`: people who type and ask, as it is shown; `browser`: those with a browser.
* `labs`: labs as Cisco's client reads them, and whether Pods have theirs; `consoles`: a device through its port.
* `deployment`: lablets of a Deployment and a learner's lab. `day`: the day of a class, a `classroom`. `mux`: many
  lablets behind one address. `portal`: a lab on request. `hub`: that with browsers, in a JupyterHub.
"""
