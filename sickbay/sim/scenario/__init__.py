"""Scenario files: unit tests for repair policies, run on the simulator by `sickbay test`.

A file is read once into plain data that remembers its lines (`document`), checked and turned into a `Scenario`
(`spec`, `timeline`, `injections`, `expectations`), run on a world of its own per variant (`runner`) and reported
(`report`). Whatever is wrong with a file is found before anything runs, as far as it can be, and names the place.
"""
