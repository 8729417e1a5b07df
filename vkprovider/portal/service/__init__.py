"""What the portal keeps and does: user labs are made, extended and taken away.

* `informers`: what the portal follows, and of the Pods those that are no user labs, such as the lablets of a class.
* `learners`: whose the lablets of classes are: by Pods, and by the RoleBindings that `assign` and admins have written.
* `index`: what a replica knows of user labs: to look them up, the line of those that wait, and who waits for news.
* `choices`: what users may choose: the menu, made of definitions, and the quotas of the configuration.
* `locks`: which replica writes for which user: a Lease per user, held only while an operation of the user's lab writes.
* `leftwork`: what learners of a class have left, and what a user has saved, asked of the provider's page with the own
  token of who asks.
* `requests`: the verbs of the page: make, delete, extend and reset the lab of a user.
* `reconciler`: one turn of a user lab: look at what is known, decide, take the user's lock, take one step.
* `keeper`: periodic work: labs are looked at again, enough warm ones are kept, instructors bound in the labs of a
  class.
* `records`: the objects of user labs as they are sent; Namespaces and Pods change, and end, only as they were seen.
* `workbenches`: everything that stands beside a lab for a workbench, and policies that follow who comes and goes.
* `making`: how a lab is made: everything that stands in its namespace.
"""
