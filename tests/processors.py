"""All tests, with the instructions of other processors: make test-cpus

Sums in another order, or without fused multiply-add, end in other digits. OpenBLAS and Numba can be
told to work as on other processors, as far as this one knows their instructions; those that it does
not know are skipped by name.
"""

import os
import subprocess
import sys

# name: features that OpenBLAS's kernels of that name need, as NumPy calls them
BLAS = {"Haswell": ["AVX2", "FMA3"], "SkylakeX": ["AVX512_SKX"], "Zen": ["AVX2", "FMA3"]}
CACHE = ".pytest_cache/numba-generic"
NAMES = [*BLAS, "generic"]
PROBE = """
import numpy, scipy.linalg, threadpoolctl
libraries = [p for p in threadpoolctl.threadpool_info() if p["internal_api"] == "openblas"]
print(*{p["architecture"] for p in libraries})
"""


def settings(name):
    """Variables of the environment, and why this processor cannot be tried, if so."""
    if name == "generic":  # no vectors beyond SSE2, no fused multiply-add
        return {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": os.path.abspath(CACHE)}, None
    from numpy._core._multiarray_umath import __cpu_features__ as known

    extra = {"OPENBLAS_CORETYPE": name}
    if missing := [feature for feature in BLAS[name] if not known.get(feature)]:
        return extra, f"this processor has no {' and no '.join(missing)}"
    probe = subprocess.run(
        [sys.executable, "-c", PROBE],
        env={**os.environ, **extra},
        capture_output=True,
        text=True,
        check=False,
    )
    if probe.stdout.strip().lower() != name.lower():
        return extra, f"OpenBLAS works as on {probe.stdout.strip() or 'no processor it can name'}"
    return extra, None


def main(arguments):
    ended = {}
    for name in NAMES:
        extra, why = settings(name)
        if why is not None:
            ended[name] = f"skipped: {why}"
            print(f"== {name}: {ended[name]}", flush=True)
            continue
        print(
            f"== {name}: {' '.join(f'{key}={value}' for key, value in extra.items())}", flush=True
        )
        code = subprocess.run(
            [sys.executable, "-m", "pytest", *arguments], env={**os.environ, **extra}, check=False
        ).returncode
        ended[name] = "passed" if code == 0 else f"failed: pytest ended with {code}"
    print(*(f"{name}: {how}" for name, how in ended.items()), sep="\n")
    return int(any(how.startswith("failed") for how in ended.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
