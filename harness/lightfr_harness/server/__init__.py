"""The reference server: certificate authority, rules of aggregation, coordinator, and the files it publishes."""
