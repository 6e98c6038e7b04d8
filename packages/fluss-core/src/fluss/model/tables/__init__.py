"""Tables, partitions and databases: what they are asked to be, and what a cluster reports."""
