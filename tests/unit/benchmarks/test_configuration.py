from benchmarks.configuration import Configuration, by_turns


def test_families_take_turns_and_keep_their_order():
    def made(name, family):
        return Configuration(name, family, lambda: None, 1)

    given = [made("a1", "a"), made("a2", "a"), made("a3", "a"), made("b1", "b"), made("c1", "c"), made("c2", "c")]
    assert [one.name for one in by_turns(given)] == ["a1", "b1", "c1", "a2", "c2", "a3"]
