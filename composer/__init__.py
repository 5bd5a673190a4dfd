"""Which operators make one layer?"""
