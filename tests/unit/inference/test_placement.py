from __future__ import annotations

from typing import Any

import pytest
import torch

from sapiens2.errors import ConfigurationError
from sapiens2.inference.placement import DTYPE_NAMES, resolve_device, resolve_dtype


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"), [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")]
)
def test_resolve_device__auto_prefers_cuda_then_mps(
    monkeypatch: pytest.MonkeyPatch, cuda: bool, mps: bool, expected: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert resolve_device("auto").type == expected


def test_resolve_device__takes_names_and_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert resolve_device("cuda:1") == torch.device("cuda", 1)
    assert resolve_device(torch.device("cpu")) == torch.device("cpu")


@pytest.mark.parametrize(
    ("device", "message"),
    [("gpu", "'gpu' is not known"), ("cuda:7", "torch sees 2 CUDA devices"), ("mps", "torch sees no Apple GPU")],
)
def test_resolve_device__says_what_is_not_there(monkeypatch: pytest.MonkeyPatch, device: str, message: str) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(ConfigurationError, match=message):
        resolve_device(device)


@pytest.mark.parametrize(
    ("device", "native", "expected"),
    [("cpu", True, torch.float32), ("cuda", True, torch.bfloat16), ("cuda", False, torch.float32)],
)
def test_resolve_dtype__auto(monkeypatch: pytest.MonkeyPatch, device: str, native: bool, expected: torch.dtype) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_options: native)
    assert resolve_dtype("auto", torch.device(device)) is expected


def test_resolve_dtype__takes_names_and_types() -> None:
    cpu = torch.device("cpu")
    for name, dtype in DTYPE_NAMES.items():
        assert resolve_dtype(name, cpu) is resolve_dtype(name.upper(), cpu) is resolve_dtype(dtype, cpu) is dtype


@pytest.mark.parametrize("dtype", ["int8", "", torch.int64, None])
def test_resolve_dtype__refuses_others(dtype: Any) -> None:
    with pytest.raises(ConfigurationError, match="is not known; use 'auto', 'float32'"):
        resolve_dtype(dtype, torch.device("cpu"))
