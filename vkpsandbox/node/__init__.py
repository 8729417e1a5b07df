"""An ordinary Node beside the virtual ones: `vkprovider sandbox up --node`, for Linux and root.

It has namespaces of its own for mounts, processes and the network. A process of the sandbox holds them, and all else of
the Node runs inside, so that containers, mounts and interfaces end with that process, however it ends.

* `needs`: what a machine lacks for that.
* `room`: the namespaces, and what `down` removes of a Node; `holder`: the process that makes them; `network`: the link
  between host and Node.
* `programs`: kubelet, kube-proxy, the firewall of kube-router and CoreDNS, built from Go modules; containerd
  and runc are the system's.
* `runtime`: containerd, its network of Pods and its images.
* `components`: command lines and configuration of the others, and the objects that they need in the cluster.
"""
