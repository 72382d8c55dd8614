"""The method: denoising token credit assignment for masked diffusion language models, in PyTorch.

Knows nothing of Prefect. `ALGORITHM.md` maps each symbol of the method to a function here.
"""
