"""Audits: one file per claim. What was captured goes in, Findings come out; reports only draw them."""
