"""Results for people to read: a verdict in words, pictures as files, one self-contained HTML page.

The numbers come from `discovery` and `diagnostics`, the pictures from `plots`; the terminal belongs to `cli`.
"""

from isthmus.reports.page import report
from isthmus.reports.pictures import write_pictures
from isthmus.reports.tables import block_table, cut_table, short_layer_table
from isthmus.reports.verdict import verdict_of
from isthmus.reports.words import Line, VerdictText

__all__ = [
    "Line",
    "VerdictText",
    "block_table",
    "cut_table",
    "report",
    "short_layer_table",
    "verdict_of",
    "write_pictures",
]
