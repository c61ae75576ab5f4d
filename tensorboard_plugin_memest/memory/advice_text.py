"""Advice as text, for `print` and for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorboard_plugin_memest.memory.changes_text import changes_table, say_how, say_useless
from tensorboard_plugin_memest.memory.paper import Paper
from tensorboard_plugin_memest.memory.units import format_bytes, format_share

if TYPE_CHECKING:
    from tensorboard_plugin_memest.memory.advice import Advice, Lever

# The code of so many changes beside those that are enough is printed; the rest is on the Advice.
MOST_CODE = 4


def as_text(advice: Advice) -> str:
    """The limit, the changes that help, the fewest that are enough, batch sizes, code, and what does not help."""
    paper = Paper()
    needs = f"Needs {format_bytes(advice.needs_bytes)}; the limit is {format_bytes(advice.limit_bytes)}"
    paper.say(f"{needs}: it fits as it is." if advice.fits else f"{needs}. What to change:")
    if advice.levers:
        columns = {"Mostly": _mostly, "Fits": lambda lever: "yes" if lever.fits else "no"}
        paper.draw(changes_table(advice.levers, advice.peak_bytes, lambda lever: _saved(lever, advice), columns))
    else:
        paper.say("No change that was tried saves any memory worth telling.")
    by_name = {lever.name: lever for lever in advice.levers}
    chosen = advice.combination.names if advice.combination is not None else ()
    if advice.combination is not None:
        titles = " and ".join(by_name[name].title for name in chosen)
        least = "Smallest set that fits" if len(chosen) > 1 else "The least to change that makes it fit"
        paper.say(f"{least}: {titles}; then it needs {format_bytes(advice.combination.needs_bytes)}.")
    elif not advice.fits:
        paper.say("No set of these changes was found that makes it fit.")
    if advice.max_batch_size is not None:
        curve = ", ".join(f"{size}: {format_bytes(peak)}" for size, peak in advice.batch_curve)
        largest = (
            f"The largest batch that fits is {advice.max_batch_size}" if advice.max_batch_size else "No batch fits"
        )
        paper.say(f"{largest}, nothing else changed (peak by batch size: {curve}).")
    others = [lever for lever in advice.levers if lever.name not in chosen]
    say_how(paper, [*(by_name[name] for name in chosen), *others[:MOST_CODE]])
    say_useless(paper, advice.useless)
    for note in advice.notes:
        paper.say(f"- {note}")
    return paper.text()


def _saved(lever: Lever, advice: Advice) -> tuple[int, str]:
    if lever.is_about_the_host:
        return lever.host_saving_bytes, ""
    return lever.saving_bytes, format_share(lever.saving_bytes, advice.peak_bytes)


def _mostly(lever: Lever) -> str:
    if lever.is_about_the_host:
        return "of the host"
    saved = max(lever.saving_by_category.items(), key=lambda entry: entry[1], default=None)
    return saved[0].label if saved else ""
