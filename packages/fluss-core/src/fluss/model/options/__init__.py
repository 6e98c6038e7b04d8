"""The options of clients, scans and tables, their declarations and checks."""
