"""Display classes: figures of alignments, litmus tests and patterns.

matplotlib is imported when something is drawn, not before.
"""

from skident.plotting._alignment import AlignmentDisplay
from skident.plotting._panels import draw_together
from skident.plotting._patterns import PatternDisplay
from skident.plotting._study import StudyDisplay
from skident.plotting._total_correlation import TotalCorrelationDisplay

__all__ = [
    "AlignmentDisplay",
    "PatternDisplay",
    "StudyDisplay",
    "TotalCorrelationDisplay",
    "draw_together",
]
