"""Where the real data is."""

from pathlib import Path


def find(folder, name):
    """Return the path of a file, or None, and say so, if the folder lacks it."""
    path = Path(folder) / name
    if path.is_file():
        return path
    print(f"no {name} in --data {folder!r}, left out")
    return None
