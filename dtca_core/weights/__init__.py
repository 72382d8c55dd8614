"""Category weights: mean contributions m_c, weights w_c, and the artifact that carries them."""

from dtca_core.weights.artifact import CategoryEstimate, WeightArtifact
from dtca_core.weights.comparison import CategoryChange, WeightsComparison, compare_weights
from dtca_core.weights.estimate import estimate_weights
from dtca_core.weights.normalisation import category_weights, ratio_weights

__all__ = [
    "CategoryChange",
    "CategoryEstimate",
    "WeightArtifact",
    "WeightsComparison",
    "category_weights",
    "compare_weights",
    "estimate_weights",
    "ratio_weights",
]
