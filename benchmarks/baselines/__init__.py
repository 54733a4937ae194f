"""What is compared, behind one interface."""

from benchmarks.baselines.base import Baseline
from benchmarks.baselines.ours import Ours
from benchmarks.baselines.upstream import Upstream

BASELINES: dict[str, type[Baseline]] = {"transformers": Upstream, "ours-torch": Ours}

__all__ = ["BASELINES", "Baseline"]
