"""What the scheduler decides by, as pure functions over a picture of nodes and pods.

After kubernetes/pkg/scheduler and its plug-ins (1.36): a pod fits a node when no filter refuses it. The first filter
that refuses a node names the reason, in the real scheduler's words.
"""
