"""The experiments of the papers: one file per figure with its plan, its computation, its pictures and its verdict.

Trainings run in `sweeps`, formulas stand in `theory`; the page is written by `reports`, the terminal belongs to `cli`.
"""

from isthmus.figures.catalogue import FIGURES, named_figures, with_mnist
from isthmus.figures.claims import Claim, Judgement
from isthmus.figures.figure import FigurePlan, PaperFigure, Preset
from isthmus.figures.gallery import Finished, gallery
from isthmus.figures.workshop import Workshop

__all__ = [
    "FIGURES",
    "Claim",
    "FigurePlan",
    "Finished",
    "Judgement",
    "PaperFigure",
    "Preset",
    "Workshop",
    "gallery",
    "named_figures",
    "with_mnist",
]
