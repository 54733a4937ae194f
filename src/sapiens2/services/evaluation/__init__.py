"""Parts of an evaluation: what is measured for each task, trivial baselines beside it, worst cases, and the report."""
