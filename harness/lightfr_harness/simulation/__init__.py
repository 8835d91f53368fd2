"""Training runs: options in, one run record (JSON) out. Figures and tables are drawn from records only."""
