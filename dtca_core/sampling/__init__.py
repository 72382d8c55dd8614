"""Denoising masked responses."""

from dtca_core.sampling.denoise import Progress, denoise, sample

__all__ = ["Progress", "denoise", "sample"]
