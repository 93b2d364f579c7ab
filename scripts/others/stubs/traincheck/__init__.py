"""What TrainCheck's programs say to TrainCheck, in its absence."""


def annotate_stage(name: str) -> None: ...
