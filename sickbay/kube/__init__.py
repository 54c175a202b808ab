"""Talking to an API server: client, informers, work queue, leases, Events, and the only way to write Nodes.

Knows `sickbay.api` and the clock, nothing else of the package.
"""
