from __future__ import annotations

import pickle

import pytest

from sonant.base import errors
from sonant.base.errors import AbsentError, DependencyError, SonantError

FAMILY = [thing for thing in vars(errors).values() if isinstance(thing, type) and issubclass(thing, SonantError)]


@pytest.mark.parametrize("kind", FAMILY)
def test_an_error_is_one_paragraph_of_place_problem_and_action(kind):
    error = kind("a.csv:42", "the end is missing.", "Write it.")
    assert str(error) == "a.csv:42: the end is missing. Write it."


@pytest.mark.parametrize("kind", FAMILY)
def test_an_error_survives_the_way_back_from_a_worker(kind):
    error = pickle.loads(pickle.dumps(kind("a.csv:42", "the end is missing.", "Write it.")))
    assert type(error) is kind
    assert (error.where, error.problem, error.action) == ("a.csv:42", "the end is missing.", "Write it.")


def test_scripts_can_tell_errors_by_their_exit_code():
    codes = {kind.__name__: kind.exit_code for kind in FAMILY}
    assert codes["UsageError"] == codes["ConfigError"] == 2
    assert codes["AudioError"] == codes["ManifestError"] == codes["SourceError"] == codes["TextError"] == 3
    assert codes["StorageError"] == codes["AbsentError"] == 4
    assert codes["DependencyError"] == 5


def test_what_is_absent_says_so_by_itself():
    assert str(AbsentError("a.wav")) == "a.wav: nothing is there. Check the path; names are case-sensitive."


def test_a_missing_package_is_named_with_the_command_that_installs_it():
    error = DependencyError.for_extra("av", "formats", "Reading mp4 recordings")
    assert "Reading mp4 recordings needs the package 'av', which is not installed." in str(error)
    assert error.action == "Install it with: pip install 'sonant[formats]'"
