"""What the mean-field half of the package must show, beside the claims it rests on.

Prints tables a system: Curie-Weiss, Hopfield, a retina, Maier-Saupe and the Ising
sheet, votes, digits, and the search over the number of latents. Failures of a claim
stand in the tables as they are. The real data is read from the folder of ``--data`` or
$SKIDENT_TEST_DATA; what is not there is left out. The size "full" is that of the
claims, hours on one core; by default systems that would take more than some 20 minutes
are smaller, and "quick" takes seconds each.

    python examples/benchmarks/bench_mean_field.py --data DIR --figure-dir figures
    python examples/benchmarks/bench_mean_field.py --quick --systems curie-weiss ising

Times are of a machine as busy as it happens to be.
"""

import argparse
import os
import time
import warnings

from mean_field import (
    curie_weiss,
    digits,
    directors,
    hopfield,
    ising,
    retina,
    retina_160,
    search,
    votes,
)

SYSTEMS = {
    "curie-weiss": curie_weiss.run,
    "hopfield": hopfield.run,
    "retina": retina.run,
    "retina-160": retina_160.run,
    "votes": votes.run,
    "digits": digits.run,
    "maier-saupe": directors.run,
    "ising": ising.run,
    "search": search.run,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--data", default=os.environ.get("SKIDENT_TEST_DATA", ""))
    parser.add_argument("--figure-dir", help="where to save figures; none without it")
    parser.add_argument("--seed", type=int, default=0)
    size = parser.add_mutually_exclusive_group()
    for name in ("quick", "full"):
        size.add_argument(f"--{name}", dest="size", action="store_const", const=name)
    parser.set_defaults(size="default")
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    for name in args.systems:
        start = time.perf_counter()
        SYSTEMS[name](args)
        print(f"{name}: {time.perf_counter() - start:.0f} s in all\n", flush=True)


if __name__ == "__main__":
    main()
