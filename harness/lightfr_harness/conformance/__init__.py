"""Tries any coordinator over the wire, as many devices would, good and bad. docs/conformance.md is for its users."""
