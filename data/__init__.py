"""What exactly is the dataset?"""
