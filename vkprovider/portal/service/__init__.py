"""What the portal keeps and does: user labs are made, extended and taken away.

* `informers`: what the portal follows.
* `index`: what a replica knows of user labs: to look them up, the line of those that wait, and who waits for news.
* `lablets`: lablets that are not user labs, such as those of a class: every Pod whose RuntimeClass is a definition's.
* `choices`: what users may choose: the menu, made of definitions, and the quotas of the configuration.
* `locks`: which replica writes for which user: a Lease per user, held only while an operation of the user's lab writes.
* `requests`: the verbs of the page: make, delete, extend and reset the lab of a user.
* `reconciler`: one turn of a user lab: look at what is known, decide, take the user's lock, take one step.
* `keeper`: periodic work: labs are looked at again, enough warm ones are kept, instructors bound in the labs of a
  class.
* `records`: namespaces and Pods of user labs: made, taken, marked and deleted, each only as it was seen.
* `making`: how a lab is made: everything that stands in its namespace.
* `objects`: the objects of a user lab as they are sent to the API server.
"""
