"""Settings of the provider.

* `process`: all of one replica; `cluster`: workers, ports and lablets; `consoles`, `kubelet`: consoles and the kubelet
  API; `services`: content packages, the LDS and the grader.
"""
