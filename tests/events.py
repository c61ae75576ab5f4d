"""Records that memest itself would never write: broken, foreign, of a newer version."""

from __future__ import annotations

import json
from pathlib import Path

from tensorboard.compat.proto import summary_pb2, tensor_pb2, tensor_shape_pb2, types_pb2

from tensorboard_plugin_memest.log.event_file import share
from tensorboard_plugin_memest.memory.format import FORMAT


def content(kind: str, version: int = FORMAT) -> bytes:
    """The content of a tag's metadata."""
    return json.dumps({"format": version, "kind": kind}).encode()


def string_tensor(*payloads: bytes) -> tensor_pb2.TensorProto:
    """One string, or a vector of several."""
    dims = [tensor_shape_pb2.TensorShapeProto.Dim(size=len(payloads))] if len(payloads) != 1 else []
    return tensor_pb2.TensorProto(
        dtype=types_pb2.DT_STRING, tensor_shape=tensor_shape_pb2.TensorShapeProto(dim=dims), string_val=payloads
    )


def write_raw(directory: Path | str, tag: str, about: bytes, tensor: tensor_pb2.TensorProto) -> None:
    """Writes a summary of memest's plugin into `directory` itself, whatever it says."""
    metadata = summary_pb2.SummaryMetadata(
        plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="memest", content=about),
        data_class=summary_pb2.DATA_CLASS_TENSOR,
    )
    file = share(str(directory))
    file.write(summary_pb2.Summary.Value(tag=tag, metadata=metadata, tensor=tensor))
    file.release()
