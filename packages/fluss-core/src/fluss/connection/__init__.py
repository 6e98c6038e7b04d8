"""From an address or a config to a connection, and from a connection to the handle of a table.

Rule: a connection knows no verbs; what a verb keeps once per connection is a service that the
verb's room makes on first use. URLs, profiles and the environment are read here and nowhere else.
"""
