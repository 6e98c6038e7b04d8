"""Access control: which user may do what, as Fluss's authorizer decides it.

`access_entries` decides from stored entries, `request_rights` says what each request needs, and
`access_control` joins both for the connections of one server. `user_passwords` knows the users.
"""
