"""The cost audit: what the paper and our documents say of bytes and time, beside what was measured."""
