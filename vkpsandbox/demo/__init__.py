"""The demo: a Deployment of lablets on a sandbox, each step checked as it is shown.

* `story`: the steps in order; `labs`: labs as Cisco's client reads them; `reach`: a console through its port.
"""
