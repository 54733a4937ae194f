"""Whole jobs, shared by the command line and other front ends: validate, predict, save."""
