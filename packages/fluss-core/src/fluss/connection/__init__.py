"""From an address or a config to a connection, and from a connection to the handle of a table.

Rule: a connection knows no verbs; a verb's room makes what it keeps per connection as a service, on
first use. URLs, profiles and the environment are read here and nowhere else.
"""
