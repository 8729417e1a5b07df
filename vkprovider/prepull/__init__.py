"""Images that ordinary Nodes are to hold before somebody waits for them; `vkprovider prepull` has them pulled.

* `config`: the file that names images, and repositories of which the recommended, newest and pinned versions count.
* `distribution`: what a registry answers, as the distribution API has it, and logins. Pure.
* `plan`: which Node lacks which image, and which Pods pull them or have done so. Pure.
* `registry`: asks a registry for tags and digests.
* `passes`: asks the cluster, and makes and deletes the Pods.
"""
