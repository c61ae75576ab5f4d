"""Models of keras.applications, trained from scratch on small images."""

from __future__ import annotations

from typing import Any

import keras

from benchmarks.configuration import Build, Configuration, compiled


def _application(make: Any, size: int, optimizer: str = "adam", **options: Any) -> Build:
    def build() -> keras.Model:
        return compiled(make(weights=None, classes=100, input_shape=(size, size, 3), **options), optimizer)

    return build


def _of(name: str, build: Build, batch_size: int) -> Configuration:
    return Configuration(name, "keras.applications", build, batch_size)


_applications = keras.applications

CONFIGURATIONS = [
    _of("MobileNet 96, batch 8", _application(_applications.MobileNet, 96), 8),
    _of("MobileNetV2 96, batch 4", _application(_applications.MobileNetV2, 96), 4),
    _of("MobileNetV3Small 96, SGD, batch 8", _application(_applications.MobileNetV3Small, 96, "sgd"), 8),
    _of("ResNet50 64, batch 8", _application(_applications.ResNet50, 64), 8),
    _of("DenseNet121 64, batch 4", _application(_applications.DenseNet121, 64, "sgd"), 4),
    _of("EfficientNetB0 64, batch 4", _application(_applications.EfficientNetB0, 64, "rmsprop"), 4),
    _of("Xception 96, SGD, batch 2", _application(_applications.Xception, 96, "sgd"), 2),
    _of("VGG16 32, SGD, batch 8", _application(_applications.VGG16, 32, "sgd"), 8),
]
