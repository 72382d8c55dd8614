"""Every error that dtca_core raises on purpose.

DtcaError
  RequestError       what was asked for cannot be; the command line ends with status 2
    ConfigError      a setting that can never work, found before any compute
    DataError        a dataset, prompt or file of problems that cannot be used
    ModelError       a model folder that is incomplete or of another shape
    ArtifactError    an artifact that is missing, damaged or ambiguous
  TrajectoryError    a recorded denoising run that contradicts itself
  TrainingError      a training run that failed or stopped itself

Each message has three parts: what was found, what is needed, what to do.
"""


class DtcaError(Exception):
    """Base of every error that dtca_core raises on purpose."""


class RequestError(DtcaError):
    """What was asked for cannot be, whatever is tried: bad config, missing file, bad model."""


class ConfigError(RequestError):
    """A setting that can never work, found before any compute."""


class DataError(RequestError):
    """A dataset, prompt or file of problems that cannot be used."""


class ModelError(RequestError):
    """A model folder that is incomplete or of another shape than its config says."""


class ArtifactError(RequestError):
    """An artifact that is missing, damaged or ambiguous."""


class TrajectoryError(DtcaError):
    """A recorded denoising run that contradicts itself."""


class TrainingError(DtcaError):
    """A training run that failed or stopped itself."""
