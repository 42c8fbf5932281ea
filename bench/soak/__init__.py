"""Long jobs and many jobs: does anything grow?"""
