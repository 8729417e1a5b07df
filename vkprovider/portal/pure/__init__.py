"""User labs: one lablet for one user, at the request of that user.

* `names`: names of objects, for any user; `portalnames`: their labels and annotations; `reasons`: what has failed.
* `config`: the file that says what the portal offers.
* `view`: a lab as its learner sees it; `classes`: a class as its instructor sees it.
* `record`: the Namespace of a user lab, which says whose it is and what was asked for.
* `facts`: a user lab as it was found.
* `state`: its state in the words of the interface, and its place in the queue.
* `decide`: its next step; `steps`: the steps.
* `options`: the body of a request.
* `clock`: the end of a user's time, and its words.
* `quota`: what a user may have.
* `menu`: the labs that users may ask for.
* `warm`: labs that are made before a user asks.
* `instructors`: who instructs in the lab of a class.
* `rejections`: why a request is refused.
* `operations`: the operation that goes on, or ended last; `stream`: its story as lines, equal on every replica;
  `position`: which of them a listener has.
"""
