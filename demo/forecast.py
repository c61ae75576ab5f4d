"""Estimates the classifier without training it, and without allocating any of it.

python -m demo.forecast --logdir runs/as-asked --note "why it was not trained"
"""

from __future__ import annotations

import memest
from demo.train import BATCH_SIZE, LIMIT, argument_parser, make_dataset, make_model
from tensorboard_plugin_memest.log.writer import RunWriter


def main() -> None:
    parser = argument_parser()
    parser.add_argument("--note", required=True, help="a sentence that the Memory tab shows beside the estimate")
    args = parser.parse_args()

    # All write into one event file, because the outer writer keeps it open.
    with RunWriter(args.logdir) as writer:
        estimate = memest.log_model(
            # A function instead of a model: it is called where variables get no memory.
            lambda: make_model(args.dense, args.pool, args.optimizer),
            batch_size=BATCH_SIZE,
            logdir=args.logdir,
            limit=LIMIT,
            advice=args.advice,
            what_if=args.advice,
        )
        if estimate is None:
            raise SystemExit("memest could not estimate the model; the warning above says why.")
        # The model is estimated without recordings, too; its pipeline begins with their names.
        if any(args.clips.glob("*/*.wav")):
            memest.log_dataset(make_dataset(args.clips), logdir=args.logdir)
        writer.write_notes([args.note])


if __name__ == "__main__":
    main()
