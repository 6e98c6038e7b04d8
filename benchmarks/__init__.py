"""Benchmarks: one file per question; each prints one table and names the machine it ran on."""
