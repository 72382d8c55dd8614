"""Making the embedded model: a tokenizer, a corpus and the masked-diffusion loss."""

from dtca_core.pretraining.evaluation import evaluate_model
from dtca_core.pretraining.loop import pretrain

__all__ = ["evaluate_model", "pretrain"]
