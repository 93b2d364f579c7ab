from typing import Any

meta_vars: dict[str, Any] = {}
