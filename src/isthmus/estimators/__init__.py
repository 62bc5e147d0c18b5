"""scikit-learn shells around `discover`: regression, classification, autoencoding. They own no mathematics.

How a rank is found and what it means: discovery. Tables of many runs: sweeps.
"""

from isthmus.estimators.autoencoder import BottleneckAutoencoder
from isthmus.estimators.classifier import BottleneckClassifier
from isthmus.estimators.regressor import BottleneckRegressor

__all__ = ["BottleneckAutoencoder", "BottleneckClassifier", "BottleneckRegressor"]
