"""What to do next with one lablet, and what to report meanwhile: from facts to one step.

* `decide`: the entry; it finds the phase and asks one of the others.
* `running`: towards READY, and back to it; `recovering`: after a failure; `ending`: the lab is taken down;
  `takedown`: how.
* `renewing`: a warm lablet takes up new content.
* `unclear`: while the lab shows nothing to go by.
* `delivering`: the learner's LDS session; `learner`: whose lablet it is.
* `stepfault`: what a failed step shows on the Pod until it is tried again.
"""
