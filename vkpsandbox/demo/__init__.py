"""Demos on a sandbox, each step checked as it is shown: lablets of a Deployment, a class, a mux, the portal, a hub.

* `stage`: what both share: the sandbox, how they tell what they do. `labs`: labs as Cisco's client reads them; `pods`:
  whether Pods are Ready and have their labs; `reach`: a console through its port.
* `story`: a Deployment of lablets and a learner's lab.
* `day`: the day of a class; `classroom`: its lablets at one time; `desk`: where its instructor sits;
  `learners`: what they do.
* `mux`: many lablets behind one address, those of behind.yaml.
* `door`: a lab on request, of door.yaml, by the portal.
* `campus`: the same with a browser, which `chromium` drives, in a JupyterHub; `hub` starts that.
"""
