"""Fixtures of tests/real_data.py, loaded by path so that any way of starting pytest finds them."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_spec = spec_from_file_location("real_data", Path(__file__).parents[1] / "real_data.py")
_shared = module_from_spec(_spec)
_spec.loader.exec_module(_shared)

real_data, haxby_slice, toy_study = _shared.real_data, _shared.haxby_slice, _shared.toy_study
