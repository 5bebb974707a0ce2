"""``python -m harness_core.cli`` is the same as ``harness``."""

from harness_core.cli import main

main()
