"""Decide: which node is treated how, and when.

The decisions are pure functions over objects as they are now (`now` is an argument):

    catalogue     fault types, built in and overridden          -> Catalogue
    faults        a Node's active faults, and when one is over   -> Active, Evidence
    arbitration   which fault leads                              -> order
    plan          fault + pool + rule                            -> the plan in NodeRepair.spec
    opening       whether a node gets a new repair               -> NodeRepair or a reason why not
    approval      the handshake on the node                      -> Answer, JSON patch operations
    slots         who may start                                  -> slots to add and to drop
    progress      one open repair, one moment                    -> its new state and what has to be done for it

`controller` around them reads informers and writes the results. It keeps nothing that is not in the objects.
"""
