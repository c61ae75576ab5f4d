from benchmarks.attribution import compare

PREDICTED = [
    (["dense"], "weights", 600, "kernel"),
    (["dense"], "gradients", 300, "MatMul_1"),
    (["conv"], "weights", 100, "k"),
]


def test_the_same_is_the_same():
    found = compare(PREDICTED, PREDICTED)
    assert (found["both"], found["category"], found["gaps"]) == (1, 1, [])
    assert (found["predicted"], found["measured"]) == (1000, 1000)


def test_what_is_missing_and_what_is_too_much_are_gaps_of_the_larger():
    measured = [
        (["dense"], "weights", 600, "kernel"),
        (["conv"], "weights", 100, "k"),
        (["conv"], "activations", 50, "a"),
    ]
    found = compare(PREDICTED, measured)
    assert found["both"] == found["category"] == 0.7
    assert found["gaps"] == [("dense", "gradients", 300), ("conv", "activations", -50)]


def test_another_layer_agrees_in_category_only():
    measured = [(["dense"], "weights", 700, "kernel"), (["dense"], "gradients", 300, "MatMul_1")]
    found = compare(PREDICTED, measured)
    assert (found["both"], found["category"]) == (0.9, 1)
    assert sorted(found["gaps"]) == [("conv", "weights", 100), ("dense", "weights", -100)]


def test_what_may_be_of_several_layers_takes_what_others_leave():
    predicted = [(["a"], "temporaries", 100, "x"), (["b"], "temporaries", 100, "y")]
    # The first may be of either, the second only of `a`.
    measured = [(["a", "b"], "temporaries", 100, "x"), (["a"], "temporaries", 100, "y")]
    assert compare(predicted, measured)["both"] == 1
