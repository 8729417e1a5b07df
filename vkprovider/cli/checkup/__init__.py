"""`vkprovider doctor` and `kubectl lablet doctor`: decide what is read and asked, and pass it to the checks.

* `gather`: a whole cluster; `instructor`: one namespace, with the rights of an instructor.
* `setup`: checks of the installation: custom resource definitions, namespace, rights, replicas, clocks.
* `rooms`: checks whether there will be room for what schedules of pools ask.
* `workloads`: checks of what makes Pods of lablets.
"""
