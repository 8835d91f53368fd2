"""The paper's tables and figures, measured anew beside what it states."""
