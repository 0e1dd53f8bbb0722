"""``python -m skfair``: see :mod:`skfair.command.main`."""

import sys

from skfair.command.main import main

if __name__ == "__main__":
    sys.exit(main())
