"""The command line: arguments in, exit codes out. Nothing heavy is imported before a command runs."""
