"""Loads an application from a user's Python file: ``sluicegate run app.py``.

The file defines ``pipeline`` (a ``Pipeline``, or a function that returns one), or ``app``, an ``App``, if it also has
rows and the right answer. It may import modules that lie beside it.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType

from pyspark import cloudpickle

from sluicegate.errors import BadInput
from sluicegate.lab.running.app import App
from sluicegate.spark.pipeline.declaration import Pipeline


def app_from(path: Path) -> App:
    """Load the file and return the application that it defines."""
    if not path.is_file():
        raise BadInput(f"no file {path}: give an application's name or a Python file")
    # A name of its own: a file called statistics.py must not stand in for Python's.
    name = f"sluicegate_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadInput(f"{path} is no Python file: its name should end in .py")
    module = importlib.util.module_from_spec(spec)
    # Pickle the file's functions by value: Spark's workers cannot import a module that is not on their path.
    sys.modules[name] = module
    by_value: Callable[[ModuleType], None] = cloudpickle.register_pickle_by_value
    by_value(module)
    folder = path.absolute().parent
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # last: no file there stands in for an installed module
    known = set(sys.modules)
    try:
        with redirect_stdout(sys.stderr):  # standard output belongs to the command's answer
            spec.loader.exec_module(module)
            app, pipeline = getattr(module, "app", None), getattr(module, "pipeline", None)
            if not isinstance(app, App) and callable(pipeline):
                pipeline = pipeline()
    except (Exception, SystemExit) as problem:
        raise BadInput(f"{path} does not load: {type(problem).__name__}: {problem}") from problem
    for beside in sorted(sys.modules.keys() - known):
        if _lies_in(folder, beside):
            by_value(sys.modules[beside])
    return _found(path, app, pipeline)


def _lies_in(folder: Path, module: str) -> bool:
    """Whether a module is a file or package of ``folder`` itself, not of an environment that is installed there."""
    top = folder / module.partition(".")[0]
    origin = getattr(sys.modules[module], "__file__", None)
    return origin is not None and (Path(origin) == top.with_suffix(".py") or Path(origin).is_relative_to(top))


def _found(path: Path, app: object, pipeline: object) -> App:
    if isinstance(app, App):
        return app
    if isinstance(pipeline, Pipeline):
        return App(pipeline.name, lambda: pipeline)
    raise BadInput(f"{path} defines no pipeline: let it say pipeline = Pipeline(...), see sluicegate run --help")
