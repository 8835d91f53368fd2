"""The cost audit: what the paper says of bytes and time, beside what was measured. One file per claim."""
