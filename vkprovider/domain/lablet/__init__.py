"""The lab of one Pod, step by step.

* `facts`: what a decision is made from, and what it looks like: `Facts`, `Decision`, `Step`.
* `decide`: the next step; `running`, `ending`, `delivering` decide while the lab runs, ends, and has an LDS session.
* `intent`, `inputs`: what the Pod asks for: its containers, images and annotations.
* `lifecycle`: the states of a lablet and the transitions between them.
* `status`: the Pod's status, rendered and as a patch.
* `stepfault`: what a failed step says on the Pod; `leftovers`: what a learner leaves behind.
"""
