"""``python -m sapiens2``."""

import sys

from sapiens2.cli.main import main

sys.exit(main())
