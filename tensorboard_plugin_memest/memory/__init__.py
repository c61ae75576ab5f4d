"""The vocabulary: plain data about memory, without TensorFlow and without anything else of this project."""
