"""What a fitted estimator holds: support vectors, a basis, or weights of features; and its outputs.

Each class here declares fitted attributes, makes the learned function from them, and evaluates it.
"""
