"""The node agent's eyes: raw signals of one host become diagnoses, conditions of its Node and Events.

    a raw line ── record.py ──► Record ── judge.py ──► Finding ── group.py ──► Diagnosis     (pure, offline too)
                                                          └────── agent.py ──► conditions, devices, Events

`record` knows how lines travel (kmsg, dmesg, syslog, journal), the rule modules know what drivers print, `tables` holds
what the codes mean. None of them does I/O: that is left to the sources and the agent.
"""
