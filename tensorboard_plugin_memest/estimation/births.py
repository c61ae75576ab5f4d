"""How variables come to be, as events: one by one while a model is built, together in a function's first call."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tensorboard_plugin_memest.estimation.creation import Creations
from tensorboard_plugin_memest.estimation.eager import EagerRun, Made
from tensorboard_plugin_memest.estimation.events import ALLOCATE, FREE, RELABEL, Buffer, Event
from tensorboard_plugin_memest.estimation.small import handle_event
from tensorboard_plugin_memest.estimation.tag import Tag, variable_tag
from tensorboard_plugin_memest.estimation.trace import Trace
from tensorboard_plugin_memest.estimation.variable_store import VariableStore
from tensorboard_plugin_memest.estimation.variables import STEP, Variable
from tensorboard_plugin_memest.memory.category import Category

# Ops that only repeat a value, and up to how many bytes a tensor that is computed ahead may be larger than what it is
# computed from. Source: `constant_folding.cc` in TensorFlow's Grappler (`kMaxConstantSize`).
_CONSTANTS = {"Const", "Fill", "ZerosLike", "OnesLike"}
_LARGEST_FOLDED = 100 * 1024


@dataclass(frozen=True)
class Birth:
    """A variable and what computing its first value does to memory.

    Attributes:
        variable: the variable.
        run: how its first value is computed.
        gone: variables that are there no more by then.
        moment: of what goes on around it, how many steps come before it.
        value: number of the tensor made there that is its first value; None if that is computed for it alone.
    """

    variable: Variable
    run: EagerRun
    gone: Sequence[Variable] = ()
    moment: int = 0
    value: int | None = None


def building_events(
    births: Iterable[Birth], building: EagerRun, store: VariableStore, *, handles: bool
) -> tuple[list[Event], list[Event]]:
    """A model is built: variables come to be, and what the code makes besides comes and goes between them.

    Args:
        births: the variables, in order.
        building: what the code that builds the model makes besides.
        store: as for `birth_events`.
        handles: as for `birth_events`.

    Returns:
        What happens, and how that goes which the code still holds when it is done: what a step uses of it is among the
        step's own constants.
    """
    tags = [
        Tag(STEP, made.op, Category.TEMPORARIES, "made by the code that builds the model", None, made.shape, made.dtype)
        for made in building.made
    ]
    buffers = [Buffer(made.bytes, references=1) for made in building.made]
    held: set[int] = set()
    events: list[Event] = []

    def go_on(begin: int, end: int) -> None:
        for number, is_made in building.steps[begin:end]:
            if is_made:
                held.add(number)
                events.append(Event(ALLOCATE, buffers[number], tags[number].name, tags[number]))
            else:
                held.remove(number)
                events.extend(_released(buffers[number], tags[number].name))

    done = 0
    for birth in births:
        go_on(done, birth.moment)
        done = max(done, birth.moment)
        events += birth_events([birth], store, handles=handles, around=buffers)
    go_on(done, len(building.steps))
    left = [event for number in sorted(held) for event in _released(buffers[number], tags[number].name)]
    return events, left


def birth_events(
    births: Iterable[Birth], store: VariableStore, *, handles: bool = False, around: Sequence[Buffer] = ()
) -> list[Event]:
    """Variables come to be: their first values are computed, one variable after another, and kept in `store`.

    Args:
        births: the variables.
        store: keeps their memory.
        handles: whether their handles lie in the device's memory, too.
        around: the tensors of what goes on around it, by number.
    """
    events: list[Event] = []
    for birth in births:
        variable, run = birth.variable, birth.run
        for one in birth.gone:
            events += _released(store.buffers.pop(one), one.name)
        buffers = [Buffer(made.bytes) for made in run.made]
        tags = [_tag(variable, made) for made in run.made]
        for number, is_made in run.steps:
            tag = tags[number]
            events.append(Event(ALLOCATE if is_made else FREE, buffers[number], tag.name, tag if is_made else None))
        if handles:
            events.append(handle_event())
        if birth.value is not None:
            kept = around[birth.value]
        elif run.result is not None:
            kept = buffers[run.result]
        else:
            events += existing_events(variable, store)
            continue
        # The variable takes over the memory of its first value.
        kept.references += 1
        kept.is_resident = True
        store.buffers[variable] = kept
        events.append(Event(RELABEL, kept, f"{variable.name} initializer", variable_tag(variable)))
    return events


def _released(buffer: Buffer, name: str) -> list[Event]:
    """Somebody who held a tensor does not any more."""
    buffer.references -= 1
    return [] if buffer.references else [Event(FREE, buffer, name)]


def shared_birth_events(births: Iterable[Birth], store: VariableStore, *, on_the_host: bool) -> list[Event]:
    """Variables of a function's first trace come to be: equal first values are computed once, for all of them.

    What holds one together with others gets memory of its own when it is changed first. Grappler computes values that
    nothing random is in before the function runs, on the host, and the function then has them as constants.

    Args:
        births: the variables.
        store: keeps their memory.
        on_the_host: whether the host's memory is the device's.
    """
    births = list(births)
    events = list(_before_the_function(births)) if on_the_host else []
    known: dict[str, Buffer] = {}
    for birth in births:
        recipe = birth.run.recipe
        shared = known.get(recipe) if recipe else None
        if shared is not None:
            shared.references += 1
            store.buffers[birth.variable] = shared
            continue
        events += existing_events(birth.variable, store) if _is_folded(birth.run) else birth_events([birth], store)
        if recipe:
            known[recipe] = store.buffers[birth.variable]
    return events


def sent_birth_events(
    births: Iterable[Birth], store: VariableStore, *, arrival: int | None, on_the_host: bool
) -> list[Event]:
    """Variables of a function's first trace come to be on one of several workers, which all begin with the same values.

    The first worker computes equal values once, gives each variable a copy, and sends one more, which is there until
    all others have it; of these copies any number may be waiting at a time, so all are counted. The others receive what
    then is the variable, in any order. Source: `_get_variable_creator_initial_value` in
    `tensorflow/python/distribute/collective_all_reduce_strategy.py`, and the profile of two workers.

    Args:
        births: the variables.
        store: keeps their memory.
        arrival: seed of the order in which values are received; None for the worker that sends them.
        on_the_host: whether the host's memory is the device's.
    """
    births = list(births)
    events = list(_before_the_function(births)) if on_the_host else []
    is_first = arrival is None
    if not is_first:
        random.Random(arrival).shuffle(births)
    values = {birth.run.recipe or birth.variable.name: birth.variable for birth in births} if is_first else {}
    computed = [(Buffer(one.bytes), _value_tag(one, "initializer", "initializer temporary")) for one in values.values()]
    sent = [
        (Buffer(birth.variable.bytes), _value_tag(birth.variable, "CollectiveBcastSend", "sent to other workers"))
        for birth in (births if is_first else ())
    ]
    events += [Event(ALLOCATE, buffer, tag.name, tag) for buffer, tag in computed]
    for birth in births:
        events += existing_events(birth.variable, store)
    events += [Event(ALLOCATE, buffer, tag.name, tag) for buffer, tag in sent]
    return [*events, *(Event(FREE, buffer, tag.name) for buffer, tag in [*sent, *computed])]


def existing_events(variable: Variable, store: VariableStore) -> list[Event]:
    """A variable is there, nobody saw how."""
    buffer = Buffer(variable.bytes, references=1, is_resident=True)
    store.buffers[variable] = buffer
    return [Event(ALLOCATE, buffer, variable.name, variable_tag(variable))]


def _before_the_function(births: list[Birth]) -> Iterator[Event]:
    """What happens on the host before a function runs that creates variables: they have their handles by then."""
    folded = list({birth.run.recipe: birth for birth in births if _is_folded(birth.run)}.values())
    yield from (handle_event() for _ in births)
    for change in (_folding, _parsing):
        for birth in folded:
            yield from change(birth)


def _is_folded(run: EagerRun) -> bool:
    if not run.recipe or run.result is None:
        return False
    # What is large and larger than what it is computed from stays an op.
    return all(made.bytes <= max(given.bytes, _LARGEST_FOLDED) for given, made in _computed(run))


def _computed(run: EagerRun) -> Iterator[tuple[Made, Made]]:
    """What is more than a value repeated, each with the largest tensor that it may be computed from."""
    for number, made in enumerate(run.made):
        if made.op not in _CONSTANTS and number:
            yield max(run.made[:number], key=lambda given: given.bytes), made


def _folding(birth: Birth) -> Iterator[Event]:
    """What Grappler does on the host to compute a first value: each op reads a copy of what it is given."""
    for given, made in _computed(birth.run):
        original, copy, computed = Buffer(given.bytes), Buffer(given.bytes), Buffer(made.bytes)
        given_tag, computed_tag = _tag(birth.variable, given), _tag(birth.variable, made)
        yield Event(ALLOCATE, original, given_tag.name, given_tag)
        yield Event(ALLOCATE, copy, given_tag.name, given_tag)
        yield Event(FREE, original, given_tag.name)
        yield Event(ALLOCATE, computed, computed_tag.name, computed_tag)
        yield Event(FREE, copy, given_tag.name)
        yield Event(FREE, computed, computed_tag.name)


def _parsing(birth: Birth) -> Iterator[Event]:
    """A constant is looked at once more before the function is made."""
    tag = _tag(birth.variable, birth.run.made[-1])
    buffer = Buffer(birth.variable.bytes)
    yield Event(ALLOCATE, buffer, tag.name, tag)
    yield Event(FREE, buffer, tag.name)


def _tag(variable: Variable, made: Made) -> Tag:
    return Tag(
        variable.layer,
        f"{variable.name} initializer/{made.op}",
        Category.TEMPORARIES,
        "initializer temporary",
        variable.weight,
        made.shape,
        made.dtype,
    )


def _value_tag(variable: Variable, op: str, role: str) -> Tag:
    name = f"{variable.name} {op}"
    return Tag(variable.layer, name, Category.TEMPORARIES, role, variable.weight, variable.shape, variable.dtype)


def births_of(creations: Creations, trace: Trace, built: int = 0) -> tuple[list[tuple[int, Birth]], list[str]]:
    """The births that were seen, each with its number among the creations, and the names of variables of nobody's.

    Variables that belong to nothing that was traced count too, as long as somebody holds them; and of the first `built`
    those that go before another of them comes to be.
    """
    births, others = [], []
    if any(trace.variables.of_handle(creation.handle) is None for creation in creations.all):
        gc.collect()
    passing: dict[int, Variable] = {}
    for number, creation in enumerate(creations.all):
        variable = trace.variables.of_handle(creation.handle)
        if variable is None and creation.is_held:
            variable = trace.variables.add_other(creation.handle, creation.name, creation.shape, creation.dtype)
            others.append(variable.name)
        if variable is None and creations.gone.get(number, built) < built:
            variable = passing[number] = trace.variables.passing(creation.name, creation.shape, creation.dtype)
        if variable is not None:
            gone = [passing.pop(one) for one in list(passing) if creations.gone[one] <= number]
            births.append((number, Birth(variable, creation.run, gone, creation.moment, creation.value)))
    # Of what nobody sees going, nothing is told.
    return [(number, birth) for number, birth in births if number not in passing], others
