"""``python -m fairpca.reproductions.vu2022 FOLDER [--quick] [--out FILE]``."""

from __future__ import annotations

import argparse
import sys

from fairpca.reproductions.vu2022 import run

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m fairpca.reproductions.vu2022", description=run.__doc__.splitlines()[0]
    )
    parser.add_argument("data", help="folder of the prepared tables")
    parser.add_argument("--quick", action="store_true", help="two splits, small tables only")
    parser.add_argument("--out", help="also write the report to this file")
    arguments = parser.parse_args()
    result = run(arguments.data, quick=arguments.quick, out=arguments.out)
    sys.stdout.write(f"{result}\n")
    sys.exit(0 if arguments.quick or result.succeeded else 1)
