"""``python -m harness`` is the console script ``harness``."""

from harness.cli import main

if __name__ == "__main__":
    main(prog_name="harness")
