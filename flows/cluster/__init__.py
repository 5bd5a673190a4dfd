"""Several GPUs and several machines: the shards of a run as Ray tasks, through Prefect's `RayTaskRunner`.

Each shard asks Ray for one GPU, or for the CPU slots of a node, and holds an engine as on one machine. What
it has finished goes, one measurement at a time, into a mailbox next to the driver; the driver alone writes
the ledger. A shard that dies with its node is measured elsewhere, without what it had finished.
"""
