from dataclasses import replace

from benchmarks.fingerprint import fingerprint
from benchmarks.models import CONFIGURATIONS


def test_the_same_configuration_has_the_same_fingerprint():
    for configuration in CONFIGURATIONS.values():
        assert fingerprint(configuration) == fingerprint(configuration)


def test_no_two_configurations_share_a_fingerprint():
    # Names and families count for nothing, so this compares the models themselves.
    assert len({fingerprint(configuration) for configuration in CONFIGURATIONS.values()}) == len(CONFIGURATIONS)


def test_what_is_trained_with_counts_and_what_it_is_called_does_not():
    configuration = next(iter(CONFIGURATIONS.values()))
    assert fingerprint(replace(configuration, batch_size=3)) != fingerprint(configuration)
    assert fingerprint(replace(configuration, vocabulary=9)) != fingerprint(configuration)
    assert fingerprint(replace(configuration, name="another")) == fingerprint(configuration)
