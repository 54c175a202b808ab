"""The host side of the back-end `agent`: a node's agent carries out the NodeTasks of its own node, and no others.

runner     which tasks are accepted, in which order things are written down and done
journal    what was begun, on the host's disk, before it is begun
host       what can be done to a host, and a Linux host
"""
