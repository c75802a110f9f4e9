"""Print how long each size of a plan takes, and its outstanding part.

python -m experiments.budget plan.yml
"""

import argparse
from pathlib import Path

from .plan import Plan
from .schedule import cores
from .stages import budget, stages


def main() -> None:
    """Parse the arguments and print the budget."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", type=Path, metavar="PLAN")
    parser.add_argument("--processes", type=int, default=cores(), help="at a time")
    args = parser.parse_args()
    try:
        plan = Plan.read(args.plan)
        for size in plan.content["sizes"]:
            print(budget(size, stages(plan, size, Path()), args.processes))
        print("Without conversion, probes, figures and report.")
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
