"""Assertions that explain themselves: a failed `assert` shows the values in its expression, as in a test of pytest.

The message of each assertion states what must hold. `install` comes before the imports of the modules that assert.
"""

import ast
import importlib.machinery
import pathlib
import subprocess
import sys
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = ROOT / "Tests"


class Loader(importlib.machinery.SourceFileLoader):
    """Loads a module with its assertions rewritten by pytest."""

    def get_code(self, fullname):
        return self.source_to_code(self.get_data(self.path), self.path)

    def source_to_code(self, data, path, **_):
        return rewritten(ast.parse(data), data, path)


def rewritten(tree, source, path):
    from _pytest.assertion.rewrite import rewrite_asserts

    rewrite_asserts(tree, source, str(path))
    return compile(tree, path, "exec", dont_inherit=True)


def install():
    """Explains the assertions of every module in Tests that is imported from now on."""
    subprocess.run([ROOT / "scripts/ensure-python-tools"], check=True)
    sys.path += [str(path) for path in (ROOT / ".build/python/lib").glob("python*/site-packages")]

    def finder(path):
        if not pathlib.Path(path).is_relative_to(TESTS):
            raise ImportError(path)
        return importlib.machinery.FileFinder(path, (Loader, [".py"]))

    sys.path_hooks.insert(0, finder)
    sys.path_importer_cache.clear()


def wait_for(condition, seconds, expectation, pause=0.1):
    """Polls until the condition is true, and returns its value.

    The expectation is a text, or a function that returns one after the deadline.
    """
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            expectation = expectation() if callable(expectation) else expectation
            raise AssertionError(f"within {seconds} s: {expectation}\n{seen(condition)}")
        time.sleep(pause)


def seen(condition):
    """The values in a condition that is not true; only a lambda shows its expression."""
    code = condition.__code__ if hasattr(condition, "__code__") else None
    source = pathlib.Path(code.co_filename).read_text() if code else ""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno and code.co_name == "<lambda>":
            assertion = ast.copy_location(ast.Assert(node.body), node.body)
            names = {
                name: cell.cell_contents
                for name, cell in zip(code.co_freevars, condition.__closure__ or (), strict=True)
            }
            try:
                exec(rewritten(ast.Module([assertion], []), source.encode(), code.co_filename),
                     {**condition.__globals__, **names})
            except AssertionError as error:
                return f"{error}"
            return "it became true after the deadline"
    return f"{condition.__name__}() returned {condition()!r}"


def explained(error):
    """The expectation that does not hold, what was seen, and where; other errors have a traceback."""
    if not isinstance(error, AssertionError):
        return "".join(traceback.format_exception(error)).rstrip()
    calls = [call for call in traceback.extract_tb(error.__traceback__) if is_shown(call.filename)]
    places = [f"\n    {pathlib.Path(call.filename).relative_to(ROOT)}:{call.lineno} in {call.name}" for call in calls]
    notes = [f"\n    {note}" for note in getattr(error, "__notes__", [])]
    return str(error).replace("\n", "\n    ") + "".join([*notes, *reversed(places)])


def is_shown(filename):
    """`True` for the modules of Tests; the runners say nothing about a failure."""
    return pathlib.Path(filename).is_relative_to(TESTS) and filename.endswith(".py") and filename != __file__
