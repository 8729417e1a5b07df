"""What is done with the lablets of a class by those who run it: on a command line, or by the page of the portal.

* `roster`: lists of a class: learners as an instructor has them, and rows for a spreadsheet.
* `pods`: a lablet's Pod, as those who run a class read, change and assign it.
* `deployments`: the Deployments of pools, and which Pods are theirs.
* `ledger`: what a class still has to be given: a pure function of the pool, its Deployment and the Pods of the
  namespace.
* `links`: a link for each learner, for people who have no account.
* `definitions`: a definition as a class makes it of the file that CML exports, and its trial.
* `pools`: the size of a pool.
* `handout`: where each learner of a class begins.
* `preview`: what would become of a list, and what the pool lacks for it.
* `access`: what lets a learner into the own lablet: a Role on that Pod, and its binding.
* `attendance`: who is known to attend a class, by what is bound in its namespace.
* `sharing`: guests of a lablet, who watch or type beside its learner.
* `providerpage`: one request to the provider's page, in the name of who asks: for commands, and for the portal.
* `archives`: what learners of a namespace left, as the provider's page lists and shows it.
* `grades`: grades of a class, of what learners have left.
* `work`: the work of learners as files: one for each device, and a folder for each learner.
* `gradebook`: grades as the gradebooks of Moodle and Canvas import them. Pure.
* `timetable`: when a pool is to be full: days and times of a zone, and what a change of clocks does to them. Pure.
* `schedules`: a schedule of a pool: CronJobs that make it full before a class, and small again at the end.
* `giving`: each learner of a list gets a lablet of a pool, which gets smaller by it.
"""
