"""What a network does layer by layer, as a labelled table: any module and data in, `xarray.Dataset` out.

The formulas are in `theory`, the pictures in `plots`, the decision about a task's rank in `discovery`.
"""

from isthmus.diagnostics.diagnose import diagnose
from isthmus.diagnostics.diagnosis import Diagnosis

__all__ = ["Diagnosis", "diagnose"]
