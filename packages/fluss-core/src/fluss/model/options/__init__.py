"""Options: those of a client, of a scan, of a table; how each is declared and checked."""
