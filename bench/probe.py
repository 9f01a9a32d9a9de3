"""Whether one encoder tells more of a label than another: the same probe on both, compared over the same speakers.

python bench/probe.py CORPUS LABEL FIRST_BUNDLE SECOND_BUNDLE
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from sonant.checkpoints.bundle import open_bundle
from sonant.evaluation.probe import Read
from sonant.metrics.intervals import Interval, ratio_interval
from sonant.recipes.probing import ProbeConfig, probed


def told(found: Interval) -> str:
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def read(bundle: str, config: ProbeConfig) -> Read:
    return probed(open_bundle(bundle).model().encoder, config)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", help="with a split to learn the probe from (train) and one to test it on (dev)")
    parser.add_argument("label")
    parser.add_argument("bundles", nargs=2, help="of pretraining")
    parser.add_argument("--most", type=int, default=2400, help="utterances of each split")
    arguments = parser.parse_args()
    config = ProbeConfig(corpus=arguments.corpus, label=arguments.label, max_utterances=arguments.most)
    one, other = (read(bundle, config) for bundle in arguments.bundles)
    print(f"{arguments.bundles[0]}: {told(one.interval())}")
    print(f"{arguments.bundles[1]}: {told(other.interval())}")
    assert one.speakers == other.speakers
    difference = ratio_interval(one.scores - other.scores, one.counts, one.speakers)
    print(f"first - second, over the same speakers: {told(difference)}")


if __name__ == "__main__":
    main()
