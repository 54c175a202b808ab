"""Execute: carry out the current step of a repair safely, and report.

    controller    which repairs have something to do now; claim, carry out, report
    claim         the report as a claim: only the winner of a conditional write acts
    guard         what is looked at afresh just before an act: the record, the node, the Holds
    quarantine    cordon and mark, with what was there before
    drain         empty the node through the eviction API, one non-blocking pass at a time
    act           Repair: dispatch under a key, look before repeating, succeed on proof
    validate      is the node well, and does it stay well?
    release       Unquarantine: take back exactly what Quarantine recorded

Each step is a function from what is known to a `Progress`; it is called again and again until it reports an end.
Nothing is kept in memory that a restart must not lose.
"""
