"""Measurements against other implementations; see compare_models."""
