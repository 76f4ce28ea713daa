"""Closed forms and enumerations of solvable models: the truth to test against."""

from skident.exact._curie_weiss import CurieWeiss, curie_weiss

__all__ = ["CurieWeiss", "curie_weiss"]
