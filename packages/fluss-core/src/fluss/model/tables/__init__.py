"""Tables, partitions and databases: descriptors for new ones, and what a cluster reports."""
