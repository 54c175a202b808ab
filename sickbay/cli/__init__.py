"""The command `sickbay`: one file per subcommand, imported when it is called."""
