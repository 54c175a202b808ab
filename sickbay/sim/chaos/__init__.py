"""Chaos: small worlds drawn from a seed, in which everything that can go wrong does, and then must settle.

worlds      the fleet, rules, pools and fault types of a seed
faults      what befalls the nodes of it
weather     what befalls Sickbay itself and the way to the API server
bystanders  people and detectors, who react to what they see
plan        all of that as one scenario
run         the run: storm, quiet tail, verdict
command     `sickbay chaos`
"""
