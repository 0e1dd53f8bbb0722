"""``python -m skfair``: see :mod:`skfair.command.main`."""

import sys

from skfair.command.main import end_with_the_pipe, main

if __name__ == "__main__":
    end_with_the_pipe()
    sys.exit(main())
