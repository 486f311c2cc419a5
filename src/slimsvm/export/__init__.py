"""Models for other languages: one reading of a fitted model, and one module a language."""
