"""In which order, with which settings, where?"""
