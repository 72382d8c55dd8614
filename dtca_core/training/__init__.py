"""Reinforcement learning in a process of its own."""
