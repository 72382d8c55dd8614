"""Models that predict what is behind the mask."""

from dtca_core.models.loading import load_predictor, save_predictor
from dtca_core.models.predictor import MaskPredictor

__all__ = ["MaskPredictor", "load_predictor", "save_predictor"]
