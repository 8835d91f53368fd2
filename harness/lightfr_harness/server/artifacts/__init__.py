"""Writers of the files that devices download. The formats stand in docs/artifacts.md."""
