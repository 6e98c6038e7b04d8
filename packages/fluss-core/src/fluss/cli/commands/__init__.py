"""The commands of `fluss`, a file for each group; `cli.application` lists them.

A command parses its arguments, calls a session, and shows the answer; how options, errors and
output look is decided once, in `cli.command_group` and beside it.
"""
