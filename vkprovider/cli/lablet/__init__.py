"""`kubectl lablet`: a kubectl plugin, found by its name `kubectl-lablet` on PATH.

* `group`: the command `kubectl lablet`, and the table of its subcommands.
* `commands`: the commands of `kubectl lablet` as a shell sees them: names, arguments, options, help.
* `completion`: what the shell completes: `kubectl lablet` through kubectl's own completion, and `kubectl-lablet` by
  itself.
* `lists`: `kubectl lablet list`: one row for each lablet, the learner first.
* `addresses`: `kubectl lablet login`, `portal` and `ports`: addresses of a lablet and of its pages.
* `configs`: `kubectl lablet configs`: the archived configurations of a lablet, also when its Pod is gone.
* `console`: `kubectl lablet console`, `logs`, `forward` and `screen`: what a lablet has of these, by their names.
* `capture`: `kubectl lablet capture`: packets of a link, for a pipe to Wireshark or a file.
* `wall`: `kubectl lablet console --watch` of several learners: what their consoles send, as lines.
* `acts`: `kubectl lablet stop`, `start`, `collect`, `reset`, `device`: requests to lablets, on their Pods.
* `timeslots`: `kubectl lablet assign`, `extend`, `release`: the time of learners.
* `links`: `kubectl lablet links`: who has a link, which takes no account; made again, or taken back.
* `sharing`: `kubectl lablet share`: a guest of a learner's lablet, to watch or to type.
* `schedules`: `kubectl lablet schedule`: pools that are full when a class begins, and small when it ends.
* `refresh`: `kubectl lablet refresh`: request a refresh of a definition's content, and wait for the outcome.
* `granting`: `kubectl lablet grant` and `approve`: instructors of a namespace, and workers that agents have brought.
* `sources`: a file that a command line names.
* `handedin`: what a class has left: work in a folder for each learner, and grades.
* `define`: `kubectl lablet define FILE`: a LabletDefinition of the file that CML exports, checked and tried.
* `doctor`: `kubectl lablet doctor`: what is wrong in the namespace of a class, one line per fault.
* `following`: `--watch`: a row for each change of a lablet, until Ctrl-C.
* `giving`: `kubectl lablet assign --from-file`: each learner of a list gets a lablet of a pool, which gets smaller by
  it.

What a subcommand does is imported only when it runs: help and completion of names and options take a tenth of a second,
a client of the Kubernetes API one more. Colours, tables and the line of progress are plain click: for one
table and one line, rich would cost 50 to 85 ms of each start and four more distributions (13 MB).
"""

from vkprovider.cli.lablet.group import main

__all__ = ["main"]
