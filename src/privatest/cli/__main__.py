"""Run the command line with ``python -m privatest.cli``."""

import sys

from privatest.cli import main

if __name__ == "__main__":
    sys.exit(main())
