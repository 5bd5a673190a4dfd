"""Runs one candidate in a child process and records facts; candidate code is executed nowhere else."""
