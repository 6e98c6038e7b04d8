"""What administrators of a cluster see and change: access, settings, placement, health."""
