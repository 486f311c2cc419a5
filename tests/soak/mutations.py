"""Files that are damaged, cut, spliced, or made by somebody who knows the format."""

import hashlib
import io
import json
import zipfile

import numpy as np

TOKENS = (
    b"nan", b"NaN", b"inf", b"-inf", b"1e999", b"-1e999", b"1e-400", b"0x10", b"--1", b"+", b"",
    b"9" * 400, b"9" * 200_000, b"1:", b":1", b"1:1:1", b"-5:1", b"0:0", b"4294967296:1",
    b"99999999999999999999:1", b"\x00", b"\xff\xfe", "é".encode(), b"'", b'"', b",,", b"\r",
    b"\n\n",
    b"#", b"true", b"null", b"None", b"<script>", b"../../x", b"/etc/x", b"1_000", b"1.5.2", b"SV",
)  # fmt: skip
VALUES = (
    None, True, -1, 0, 1, 2**31, 2**63, 10**30, 0.5, -0.0, 1e308, "", "nan", "SVC", "../x", [], {},
    [[]], [0], [-1, 5], [2**40, 2**40], {"type": "estimator"}, {"array": "basis_"}, "x" * 100_000,
)  # fmt: skip


def mutated(content: bytes, rng: np.random.Generator, other: bytes = b"") -> bytes:
    """The file with one to four kinds of damage."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        if not data:
            break
        at = int(rng.integers(len(data)))
        kind = int(rng.integers(9))
        if kind == 0:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            data[at] = int(rng.integers(256))
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at : at + int(rng.integers(1, 64))]
        elif kind == 4:
            data[at:at] = rng.bytes(int(rng.integers(1, 64)))
        elif kind == 5:
            data[at:at] = data[at : at + int(rng.integers(1, 512))]
        elif kind == 6 and other:
            data[at:] = other[int(rng.integers(len(other))) :]
        elif kind == 7:
            data[at:at] = TOKENS[int(rng.integers(len(TOKENS)))]
        else:
            words = bytes(data).split()
            if words:
                old = words[int(rng.integers(len(words)))]
                new = TOKENS[int(rng.integers(len(TOKENS)))]
                place = bytes(data).find(old)
                data[place : place + len(old)] = new
    return bytes(data)


def forged(content: bytes, rng: np.random.Generator) -> bytes:
    """A model file whose header or members were changed, with digests that fit."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members.pop("header.json"))
    kind = int(rng.integers(6))
    names = list(members)
    if kind <= 2:
        _replace_somewhere(header, rng)
    elif kind == 3 and names:  # other bytes, with their own digest
        name = names[int(rng.integers(len(names)))]
        members[name] = mutated(members[name], rng)
        if isinstance(header["arrays"].get(name), dict):
            header["arrays"][name]["sha256"] = hashlib.sha256(members[name]).hexdigest()
    elif kind == 4 and len(names) > 1:  # two arrays for each other
        one, two = (names[int(k)] for k in rng.choice(len(names), 2, replace=False))
        members[one], members[two] = members[two], members[one]
        entries = header["arrays"]
        if one in entries and two in entries:
            entries[one], entries[two] = entries[two], entries[one]
    else:  # names that lead elsewhere, or a member too many
        odd = ("../evil.npy", "/tmp/evil.npy", "basis_\x00", "a/b/c")[int(rng.integers(4))]
        members[odd] = b"x" * int(rng.integers(1, 1000))
        if rng.random() < 0.5:
            header["arrays"][odd] = {"dtype": "<f8", "shape": [1], "sha256": "0" * 64}
    header.pop("sha256", None)
    header["sha256"] = hashlib.sha256(
        json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        archive.writestr("header.json", json.dumps(header))
        if rng.random() < 0.05:
            archive.writestr("header.json", "{}")  # a second one
    return file.getvalue()


def _replace_somewhere(header, rng):
    """Another value at a random place of the header, or a place less."""
    places = list(_places(header))
    holder, key = places[int(rng.integers(len(places)))]
    if rng.random() < 0.2:
        del holder[key]
    else:
        holder[key] = VALUES[int(rng.integers(len(VALUES)))]


def _places(value):
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(items):
        yield value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)
