"""Pure functions of numpy arrays; no classes but NamedTuples."""
