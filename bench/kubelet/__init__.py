"""The kubelet API beside what it is made of.

* `run`: the benchmark; `forwarding`: a relay, ours and a plain one; `listening`: listeners that nobody uses;
  `following`: logs to which nothing is written.
"""
