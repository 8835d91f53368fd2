"""The order of the conformance tests."""


def pytest_collection_modifyitems(items):
    """Whole runs of the suite first: they take longest, and no process should be left alone with one at the end."""
    items.sort(key=lambda item: item.path.name not in ("test_clear_suite.py", "test_secure_suite.py"))
