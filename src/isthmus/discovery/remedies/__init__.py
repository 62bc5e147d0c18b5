"""What a discovery does about its own doubts before it answers: one class for each remedy, see `remedy`."""

from isthmus.discovery.remedies.anew import DeeperMiddle, MoreRows, OneScale, SmallerRidges
from isthmus.discovery.remedies.every_row import EveryRowHeldOut
from isthmus.discovery.remedies.remedy import Remedy
from isthmus.discovery.remedies.training import AnotherRidge, Descent, LongerTraining, MoreStarts, OneFewer

REMEDIES: tuple[type[Remedy], ...] = (
    OneFewer, Descent, LongerTraining, MoreStarts, AnotherRidge, SmallerRidges, EveryRowHeldOut, OneScale, DeeperMiddle,
    MoreRows,
)  # fmt: skip
