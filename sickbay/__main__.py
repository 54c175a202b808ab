"""`python -m sickbay` is the command `sickbay`."""

from sickbay.cli.main import main

main()
