"""Layers written by a language model: prompt, client, reply."""
