"""Long trials, each runnable by itself: `python -m tests.campaigns.NAME --help`. The test suite runs short ones."""
