"""python -m lightfr: the same as the lightfr command."""

from lightfr.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
