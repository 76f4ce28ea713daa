"""What the mean-field half of the package must show, beside the claims it rests on.

Prints one table a system: Curie-Weiss, the Ising sheet, Hopfield, Maier-Saupe and a
retina. Failures of a claim stand in the tables as they are. The real data is read from
the folder of ``--data`` or $SKIDENT_TEST_DATA; without it the retina is left out.

    python examples/benchmarks/bench_mean_field.py --data DIR
    python examples/benchmarks/bench_mean_field.py --quick --systems curie-weiss ising

Times are of a machine as busy as it happens to be.
"""

import argparse
import os
import warnings

from mean_field import curie_weiss, directors, hopfield, ising, retina

SYSTEMS = {
    "curie-weiss": curie_weiss.run,
    "ising": ising.run,
    "hopfield": hopfield.run,
    "maier-saupe": directors.run,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", nargs="+", default=[*SYSTEMS, "retina"])
    parser.add_argument("--data", default=os.environ.get("SKIDENT_TEST_DATA", ""))
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    for name in args.systems:
        if name == "retina":
            retina.run(args.quick, args.data, args.seed)
        else:
            SYSTEMS[name](args.quick, args.seed)
        print()


if __name__ == "__main__":
    main()
