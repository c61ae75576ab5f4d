"""What a prediction keeps of its batches, event by event."""

from __future__ import annotations

from tensorboard_plugin_memest.estimation.accumulated import PLAYED_BATCHES, Accumulated
from tensorboard_plugin_memest.estimation.events import ALLOCATE, FREE, RELABEL, Buffer, Event
from tensorboard_plugin_memest.estimation.tag import Tag
from tensorboard_plugin_memest.memory.category import Category

IN, HIDDEN, OUT = 8 * 5 * 4, 8 * 70 * 4, 8 * 3 * 4


def step(*, gives: int = OUT) -> list[Event]:
    """Predicting for eight examples: a batch, a hidden tensor and the output, as an eager step gives them up."""
    batch, hidden, out, kept, old = Buffer(IN), Buffer(HIDDEN), Buffer(gives), Buffer(4), Buffer(4)

    def made(buffer: Buffer, name: str, category: Category = Category.TEMPORARIES) -> Event:
        return Event(ALLOCATE, buffer, name, Tag("layer", name, category, name, None, None, None))

    events = [made(batch, "batch", Category.INPUTS), made(hidden, "hidden"), made(kept, "kept"), made(out, "out")]
    return [*events, *(Event(FREE, buffer, "out") for buffer in (hidden, out, batch, old))]


def sizes(events: list[Event]) -> list[tuple[str, int]]:
    return [(event.kind, event.buffer.bytes) for event in events]


def prediction(examples: int) -> Accumulated:
    return Accumulated([("out", (8, 3), "float32")], 8, examples)


def test_one_batch_is_the_step_itself():
    events = step()
    assert prediction(8).around(events) == (events, 0)


def test_a_batch_goes_when_the_next_one_is_there_and_outputs_stay_until_they_are_joined():
    given = step()
    events, begins = prediction(16).around(given)
    # Of the first batch what outlives a step is left out: the second one stands for both.
    first = [(ALLOCATE, IN), (ALLOCATE, HIDDEN), (ALLOCATE, OUT), (FREE, HIDDEN), (RELABEL, OUT)]
    second = [(ALLOCATE, IN), (FREE, IN), (ALLOCATE, HIDDEN), (ALLOCATE, 4), (ALLOCATE, OUT), (FREE, HIDDEN)]
    end = [(ALLOCATE, 2 * OUT), (FREE, OUT), (FREE, OUT), (FREE, 2 * OUT), (FREE, IN)]
    assert sizes(events) == [*first, *second, (RELABEL, OUT), (FREE, 4), *end]
    assert begins == len(first)
    assert events[begins].buffer is given[0].buffer
    assert events[begins + 1].buffer is events[0].buffer
    # Nothing is given up twice.
    freed = [event.buffer for event in events if event.kind == FREE]
    assert len({id(buffer) for buffer in freed}) == len(freed)


def test_the_last_batches_are_played_and_the_outputs_of_earlier_ones_are_there_from_the_beginning():
    events, begins = prediction(8 * 20 + 5).around(step())
    assert sum(event.kind == ALLOCATE and event.buffer.bytes == HIDDEN for event in events) == PLAYED_BATCHES
    # Seventeen batches, and one that is not full.
    before = events[: next(place for place, event in enumerate(events) if event.buffer.bytes == IN)]
    assert sizes(before) == [(ALLOCATE, OUT)] * 17 + [(ALLOCATE, 5 * 3 * 4)]
    # Then the parts of 21 batches go, what was made of them, and the last batch.
    assert sizes(events)[-21 - 2 - 1] == (ALLOCATE, (8 * 20 + 5) * 3 * 4)
    assert events[begins].buffer.bytes == IN


def test_an_output_that_the_step_gave_up_in_another_size_comes_back():
    events, _ = prediction(16).around(step(gives=OUT + 4))
    assert sizes(events).count((ALLOCATE, OUT)) == 2
    assert sizes(events).count((FREE, OUT)) == 2
    assert RELABEL not in {event.kind for event in events}
