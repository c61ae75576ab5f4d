from pathlib import Path

import pytest

from demo import runs as demo_runs
from demo.runs import RUNS, Run, fingerprint, is_made

GIB = 2**30
AS_ASKED = RUNS[0]


def test_as_asked_is_trained_only_where_21_gib_are_available() -> None:
    assert AS_ASKED.name == "as-asked"
    assert demo_runs._why_not(AS_ASKED, 21 * GIB) is None
    assert demo_runs._why_not(AS_ASKED, 21 * GIB - 1) is not None
    reason = demo_runs._why_not(AS_ASKED, 13 * GIB)
    assert reason == "Training takes place where 21.00 GiB of memory are available; here it was 13.00 GiB."


def test_where_the_system_does_not_tell_nothing_large_is_started() -> None:
    assert demo_runs._why_not(AS_ASKED, None) is not None


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of a few small files, which a test may change."""
    for name in (
        "memest.py",
        "demo/train.py",
        "tensorboard_plugin_memest/a.py",
        "tensorboard_plugin_memest/plugin/b.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"# {name}")
    monkeypatch.setattr(demo_runs, "REPOSITORY", tmp_path)
    return tmp_path


@pytest.mark.parametrize("changed", ["memest.py", "demo/train.py", "tensorboard_plugin_memest/a.py"])
def test_a_run_is_made_anew_when_what_makes_it_changes(repository: Path, changed: str) -> None:
    before = fingerprint()
    assert fingerprint() == before
    (repository / changed).write_text("changed")
    assert fingerprint() != before


def test_the_tab_does_not_make_runs(repository: Path) -> None:
    before = fingerprint()
    (repository / "tensorboard_plugin_memest/plugin/b.py").write_text("changed")
    assert fingerprint() == before


@pytest.mark.parametrize("stamp", [None, "", "[]", '{"made_by": "another"}'])
def test_a_directory_without_the_right_stamp_is_no_run_of_ours(tmp_path: Path, stamp: str | None) -> None:
    run = Run("small", "", (), 1, 0)
    (tmp_path / "small").mkdir()
    if stamp is not None:
        (tmp_path / "small/demo.json").write_text(stamp)
    assert not is_made(run, tmp_path)


def test_a_directory_with_it_is(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "small/demo.json").write_text(f'{{"made_by": "{fingerprint()}"}}')
    assert is_made(Run("small", "", (), 1, 0), tmp_path)


def test_a_finished_run_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    place, finished = tmp_path / "runs/small", tmp_path / "work/small.unfinished"
    for folder, text in ((place, "old"), (finished, "new")):
        folder.mkdir(parents=True)
        (folder / text).write_text(text)
    demo_runs._put_in_place(finished, place, tmp_path / "work/small.old")
    assert [path.name for path in place.iterdir()] == ["new"]
    assert not list((tmp_path / "work").iterdir())
