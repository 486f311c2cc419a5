"""A pytest plugin: scikit-learn's tests under the patch."""


def pytest_configure(config):
    import slimsvm

    slimsvm.patch_sklearn()
