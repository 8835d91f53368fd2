"""Faults that are put into a world on purpose, to show that the world finds such faults."""

PLANTED = {}
