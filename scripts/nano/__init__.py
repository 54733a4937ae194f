"""How the nano checkpoints are made: people are generated, one trunk learns all tasks, then each task its own head."""
