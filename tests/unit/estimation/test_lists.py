"""Lists of tensors: what they hold, make and give up."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tensorboard_plugin_memest.estimation.events import Buffer, TensorList
from tensorboard_plugin_memest.estimation.lists import ListResult, list_result
from tests.unit.estimation.graphs import graph, node


class Made:
    """The buffers that an op asked for."""

    def __init__(self) -> None:
        self.all: list[tuple[int, int]] = []

    def __call__(self, output: int, size: int) -> Buffer:
        self.all.append((output, size))
        return Buffer(size)


def held(size: int) -> Buffer:
    return Buffer(size, references=1)


def listing(*elements: Buffer | None, references: int = 1) -> TensorList:
    made = TensorList(list(elements))
    made.references = references
    for element in elements:
        if element is not None:
            element.references += 1
    return made


def run(
    op: str, *inputs: Buffer | None, iteration: int = 0, makes: tuple[int, ...] = (25,)
) -> tuple[ListResult | None, Made]:
    """Runs an op whose inputs are tensors of 100 float32 elements, 10 rows of 10, and that makes tensors of `makes`."""
    names = [f"in{number}" for number in range(len(inputs))]
    made = graph(*(node(name, "MatMul", [], 100) for name in names), node("n", op, names, *makes))
    for source in made.nodes[:-1]:
        source.outputs[0] = type(source.outputs[0])((10, 10), "float32", 400)
    allocate = Made()
    return list_result(made, len(inputs), inputs, iteration, allocate), allocate


def elements(result: ListResult | None, output: int = 0) -> list[Buffer | None]:
    assert result is not None
    made = result.outputs[output]
    assert isinstance(made, TensorList)
    return made.elements


def test_an_empty_list_holds_nothing():
    result, made = run("EmptyTensorList", None, None)
    assert elements(result) == []
    assert made.all == []


def test_reserving_makes_room_but_no_memory():
    reserving = graph(
        node("shape", "Const", [], 1),
        node("size", "Const", [], 1),
        node("n", "TensorListReserve", ["shape", "size"], 1),
    )
    value = tf.make_tensor_proto(np.int32(7))
    attribute = tf.compat.v1.AttrValue()
    attribute.tensor.CopyFrom(value)
    reserving.nodes[1].attributes = {"value": attribute}
    made = Made()
    result = list_result(reserving, 2, [None, None], 0, made)
    assert elements(result) == [None] * 7
    assert made.all == []


def test_a_tensors_rows_are_copied_one_by_one():
    tensor = held(400)
    result, made = run("TensorListFromTensor", tensor, None)
    assert made.all == [(0, 40)] * 10
    assert [(row.bytes, row.references) for row in elements(result)] == [(40, 1)] * 10
    assert tensor.references == 1


def test_pushing_shares_the_tensor():
    given, pushed = listing(), held(400)
    result, made = run("TensorListPushBack", given, pushed)
    assert elements(result) == [pushed]
    assert pushed.references == 2
    assert made.all == []
    assert given.elements == [], "the list had no other reader, so its elements moved"


def test_pushing_onto_a_list_that_is_read_elsewhere_leaves_that_as_it_was():
    old, pushed = held(100), held(400)
    given = listing(old, references=2)
    result, _ = run("TensorListPushBack", given, pushed)
    assert elements(result) == [old, pushed]
    assert given.elements == [old]
    assert old.references == 3


def test_setting_an_element_gives_the_old_one_up():
    old, new = held(100), held(400)
    result, made = run("TensorListSetItem", listing(None, old, None), None, new, iteration=1)
    assert elements(result) == [None, new, None]
    assert result is not None
    assert result.dropped == (old,)
    assert new.references == 2
    assert made.all == []


def test_setting_beyond_the_end_makes_the_list_longer():
    new = held(400)
    result, _ = run("TensorListSetItem", listing(), None, new, iteration=0)
    assert elements(result) == [new]


def test_setting_beyond_the_end_of_a_list_of_which_no_length_is_known_sets_the_element_that_is_meant():
    new = held(400)
    result, _ = run("TensorListSetItem", listing(), None, new, iteration=2)
    assert elements(result) == [None, None, new]


def test_a_sum_of_lists_is_as_long_as_the_longest_and_shares_what_only_one_has():
    first, last, added = held(100), held(100), held(100)
    result, made = run("AddN", listing(first, last), listing(added))
    assert made.all == [(0, 100)]
    sum_of_both, shared = elements(result)
    assert sum_of_both not in (first, added)
    assert shared is last
    assert last.references == 3, "both lists hold it, and this test"


def test_an_element_is_read_without_a_copy():
    first, second = held(100), held(200)
    result, made = run("TensorListGetItem", listing(first, second), None, iteration=1)
    assert result == ListResult([second])
    assert made.all == []


def test_an_element_that_was_never_set_is_made_when_it_is_read():
    result, made = run("TensorListGetItem", listing(None), None)
    assert made.all == [(0, 100)]
    assert result is not None
    assert result.outputs[0] is not None
    assert result.outputs[0].bytes == 100


def test_popping_gives_the_last_element_up():
    first, last = held(100), held(200)
    result, _ = run("TensorListPopBack", listing(first, last), None, makes=(1, 25))
    assert elements(result) == [first]
    assert result is not None
    assert result.outputs[1] is last
    assert result.dropped == (last,)


def test_other_ops_and_unknown_lists_are_left_to_others():
    assert run("MatMul", held(4), held(4))[0] is None
    assert run("TensorListPopBack", None, None)[0] is None
    assert run("TensorListGetItem", listing(), None)[0] is None


def test_a_batch_that_may_not_be_there_is_held_by_its_optional():
    fetching = graph(node("n", "IteratorGetNextAsOptional", [], 1))
    spec = tf.compat.v1.AttrValue()
    shapes = tf.compat.v1.AttrValue()
    spec.list.type.extend([tf.float32.as_datatype_enum, tf.int64.as_datatype_enum, tf.string.as_datatype_enum])
    for shape in ((8, 5), (8,), (8,)):
        shapes.list.shape.append(tf.TensorShape(shape).as_proto())
    fetching.nodes[0].attributes = {"output_types": spec, "output_shapes": shapes}
    made = Made()
    batch = elements(list_result(fetching, 0, [], 0, made))
    assert made.all == [(0, 160), (0, 64), (0, 0)]
    assert [buffer.references for buffer in batch] == [1, 1, 1]
    optional = listing(*batch)
    result, asked = run("OptionalGetValue", optional, makes=(40, 16, 1))
    assert result is not None
    assert result.outputs == batch, "the tensors themselves"
    assert asked.all == []


def test_an_optional_holds_what_it_is_made_from():
    one = held(4)
    result, _ = run("OptionalFromValue", one)
    assert elements(result) == [one]
    assert one.references == 2


def test_zeros_like_a_list_are_as_many_new_tensors():
    first, second = held(400), held(80)
    given = listing(first, None, second)
    result, made = run("ZerosLike", given)
    zeros = elements(result)
    assert [zero and (zero.bytes, zero.references) for zero in zeros] == [(400, 1), None, (80, 1)]
    assert made.all == [(0, 400), (0, 80)]
    assert given.elements == [first, None, second]


def test_sums_of_lists_are_new_tensors_and_what_is_alone_is_shared():
    first, second, alone = held(400), held(400), held(80)
    result, made = run("AddN", listing(first, None, None), listing(second, alone, None))
    total, shared, nothing = elements(result)
    assert total is not None
    assert (total.bytes, total.references) == (400, 1)
    assert made.all == [(0, 400)]
    assert shared is alone
    assert alone.references == 3
    assert nothing is None
