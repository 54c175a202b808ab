"""Everything that stands in for the world: hosts, nodes, Kubernetes' own controllers, clouds, faults, and time.

Only tests, the demo, `sickbay test`, chaos runs and `sickbay simulate` import this package; the product never does.
"""
