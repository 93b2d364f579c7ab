"""Every difference between library versions, and nothing else; each named after what differs."""

from __future__ import annotations

from typing import Any


def fp32_precision() -> dict[str, str]:
    """How float32 products are computed, by backend: "ieee" in full, "tf32" and "bf16" with fewer bits.

    From torch 2.9 on each backend has its own ``fp32_precision``, "none" where nobody set it, and asking the older,
    global setting raises once one of them was set.
    """
    import torch

    matmul: Any = torch.backends.cuda.matmul
    if hasattr(matmul, "fp32_precision"):
        mkldnn: Any = torch.backends.mkldnn
        found = {"matmul": matmul.fp32_precision, "cpu": mkldnn.matmul.fp32_precision}
        return {backend: "ieee" if precision == "none" else precision for backend, precision in found.items()}
    in_full = torch.get_float32_matmul_precision() == "highest"
    return {"matmul": "tf32" if matmul.allow_tf32 else "ieee", "cpu": "ieee" if in_full else "bf16"}
