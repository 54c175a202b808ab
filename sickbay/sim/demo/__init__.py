"""The demo: a small fleet on simulated machines, with the real Sickbay at work, on a clock that runs faster.

fleet     the pool, its rule, the jobs
people    a stand-in for a training platform that answers approvals
record    what happened when, read from the writes that reached the API server
story     what breaks when, and how it has to end
tell      runs the story until it is over
screen    what a person sees meanwhile: a live view, or plain lines, and the tables at the end
"""
