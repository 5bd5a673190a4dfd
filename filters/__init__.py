"""Is this layer a good task?"""
