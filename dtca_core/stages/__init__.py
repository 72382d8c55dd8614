"""The stages of the pipeline, as data, and what runs them."""

from collections.abc import Mapping

from dtca_core.stages.contribution import CONTRIBUTION
from dtca_core.stages.evaluate import EVALUATE
from dtca_core.stages.prepare import PREPARE
from dtca_core.stages.report import REPORT
from dtca_core.stages.rollouts import ROLLOUTS
from dtca_core.stages.spec import Listener, StageSpec
from dtca_core.stages.train import TRAIN
from dtca_core.stages.weights import WEIGHTS

STAGES: Mapping[str, StageSpec] = {
    spec.name: spec for spec in (PREPARE, ROLLOUTS, CONTRIBUTION, WEIGHTS, TRAIN, EVALUATE, REPORT)
}
"""Every stage by its name, in the order of the pipeline."""

__all__ = ["STAGES", "Listener", "StageSpec"]
