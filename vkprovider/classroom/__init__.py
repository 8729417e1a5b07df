"""What is done with the lablets of a class by those who run it: on a command line, or by the page of the portal.

* `roster`: a list of learners; `sheet`: rows for a spreadsheet. Pure.
* `pods`: a lablet's Pod, read and changed; `deployments`: the Deployments of pools.
* `assigning`: a lablet is given to a learner; `ledger`: what is left to give to many, a pure function; `giving`: the
  writes by which each of a list gets one.
"""
