"""``python -m kergnn`` is ``kergnn``."""

import sys

from kergnn.cli import main

sys.exit(main())
