"""Small files that several tests of tables write."""

from __future__ import annotations


def write(folder, text, name="people.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def rows(count=40, header="age,city,sex,default"):
    lines = [f"{20 + i % 17},{('Bonn', 'Ulm', 'Köln')[i % 3]},{('f', 'm')[i % 2]},{i % 2}" for i in range(count)]
    return "\n".join([header, *lines]) + "\n"


def streamed(data, *roles, **options):
    """A table prepared batch by batch, with a sample of its rows."""
    from fairpca.audit import prepare

    return prepare(data, *roles, stream=True, **options)
