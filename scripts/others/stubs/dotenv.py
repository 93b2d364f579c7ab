"""No settings are read."""


def load_dotenv() -> None: ...
