"""The privacy audit: the strongest attacks we know, on captured bytes and published matrices. One file per claim."""
