"""What the repository needs to build and check itself; nothing in packages/ imports it."""
