"""The cost audit: the paper's formulas and claims about bytes and time, beside what was measured. One file per claim."""
