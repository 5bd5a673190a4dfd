"""Which operators exist, and how are they called?"""
