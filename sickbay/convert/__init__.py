"""Infrastructure events to declarative node state.

What others know about a node, and say in words of their own or not at all, becomes conditions that decide can read: an
agent that has fallen silent, what a cloud provider announced, Events of other detectors, any other object, alerts.
Everything here reports; nothing acts.
"""
