"""``python -m fairpca.cli``."""

import sys

from fairpca.cli import main

sys.exit(main())
