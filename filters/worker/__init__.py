"""Runs one candidate in a child process and records facts. The only place where candidate code is executed."""
