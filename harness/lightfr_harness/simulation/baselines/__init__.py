"""Other methods, implemented for real, so that audits can measure them beside ours."""
