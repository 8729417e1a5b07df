"""What a process counts, and what Prometheus reads.

* `measure`: how a metric is declared; `exposition`: all of them in Prometheus' format.
* `process`: the metrics that every process has: its queues, watches, requests, Events and memory.
"""
