"""Simulated parts of Kubernetes: kubelets, scheduler and the controllers of kube-controller-manager that cases need.

Each behaves as the real one does where Sickbay or a workload can see it; what differs is said in its module. A part is
level-based: it is told which of its keys to look at again, and looks at the store as it is then.
"""
