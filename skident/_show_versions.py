"""Versions of everything that a report of a fault needs."""

import importlib.metadata
import platform
import sys

_PACKAGES = (
    "skident",
    "numpy",
    "scipy",
    "scikit-learn",
    "torch",
    "skorch",
    "numba",
    "joblib",
    "threadpoolctl",
    "tqdm",
    "matplotlib",
)


def show_versions():
    """Print the versions of Python, the system and the packages used.

    Loads none of the packages: versions are read from the installed metadata.

    Examples
    --------
    >>> import skident
    >>> skident.show_versions()  # doctest: +ELLIPSIS
    python: 3...
    """
    lines = [
        f"python: {sys.version.split()[0]}",
        f"system: {platform.system()} {platform.release()} {platform.machine()}",
    ]
    for package in _PACKAGES:
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            version = "not installed"
        lines.append(f"{package}: {version}")
    sys.stdout.write("\n".join(lines) + "\n")
