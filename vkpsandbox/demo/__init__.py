"""The demo: a Deployment of lablets and a learner's lab on a sandbox, each step checked as it is shown.

* `story`: the steps in order; `pods`: whether Pods are Ready and have their labs; `labs`: labs as Cisco's client reads
  them; `reach`: a console through its port.
"""
