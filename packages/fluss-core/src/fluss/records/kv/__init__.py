"""The batches of primary-key tables: what PUT_KV carries, and what scans and lookups answer."""
