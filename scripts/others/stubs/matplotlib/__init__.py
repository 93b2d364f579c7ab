"""Nothing is drawn."""


def use(backend: str) -> None: ...
