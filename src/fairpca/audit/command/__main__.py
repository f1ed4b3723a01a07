"""``python -m fairpca.audit.command``."""

import sys

from fairpca.audit.command import main

sys.exit(main())
