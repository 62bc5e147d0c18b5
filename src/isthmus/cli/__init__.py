"""The command line, one thin file per subcommand. Heavy packages are imported inside the commands.

Nothing is computed here: `discovery` finds, `reports` puts into words and pictures, `tasks` reads files.
"""
