"""`diagnose`: what is wrong with a model that runs?"""
