"""Model files: slimsvm's own format, LIBSVM's and SVM-light's."""

from slimsvm.persistence.libsvm import load_libsvm, save_libsvm
from slimsvm.persistence.native import file_facts, load, save
from slimsvm.persistence.svmlight import load_svmlight, save_svmlight

__all__ = [
    "file_facts",
    "load",
    "load_libsvm",
    "load_svmlight",
    "save",
    "save_libsvm",
    "save_svmlight",
]
