"""stub."""
def page(record): return ""
