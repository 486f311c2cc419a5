"""Where examples come from: real data sets of the literature, and generators of artificial ones."""

from slimsvm.datasets.download import ChecksumError, DownloadError
from slimsvm.datasets.generators import banana, checkers, waveform
from slimsvm.datasets.loading import cache_folder, load, names

__all__ = [
    "ChecksumError",
    "DownloadError",
    "banana",
    "cache_folder",
    "checkers",
    "load",
    "names",
    "waveform",
]
