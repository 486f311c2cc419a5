"""``python -m slimsvm.cli`` is the command ``slimsvm``."""

from slimsvm.cli import main

if __name__ == "__main__":
    main()
