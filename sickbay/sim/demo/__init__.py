"""The demo: a small fleet on simulated machines, with the real Sickbay at work, on a clock that runs faster.

fleet     the pools, the rules and the workloads
people    a stand-in for a training platform, and a person with kubectl
record    what happened when, read from the writes that reached the API server
tell      the story: what breaks when, and when it is over
screen    what a person sees meanwhile: a live view, or plain lines
"""
