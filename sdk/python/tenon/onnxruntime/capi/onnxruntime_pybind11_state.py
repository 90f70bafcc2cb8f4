"""The exceptions of a session, under ONNX Runtime's names.

The text of an exception begins with the number and name of its kind, as in ONNX Runtime:
"[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Input 'x' ...". Its __cause__ is the exception that Tenon raised.
"""

from __future__ import annotations

from typing import Any

from tenon import _tenon


class DeviceReset(Exception):
    """A device was reset. Tenon raises EPFail instead."""


class EPFail(Exception):
    """A device failed."""


class EngineError(Exception):
    """A device failed while the model was prepared. Tenon raises EPFail instead."""


class Fail(Exception):
    """A run failed, or was stopped by RunOptions.terminate."""


class InvalidArgument(Exception):
    """A name, dtype, shape or option that does not fit the model."""


class InvalidGraph(Exception):
    """The model has an operator that ONNX does not have, or breaks ONNX's rules."""


class InvalidProtobuf(Exception):
    """The bytes are not an ONNX model."""


class ModelLoadCanceled(Exception):
    """The loading was stopped. Tenon does not raise it."""


class ModelLoaded(Exception):
    """The session has a model already. Tenon does not raise it."""


class ModelRequiresCompilation(Exception):
    """The model must be compiled first. Tenon does not raise it."""


class NoModel(Exception):
    """The session has no model. Tenon does not raise it."""


class NoSuchFile(Exception):
    """There is no such model file."""


class NotFound(Exception):
    """Something that a session needs does not exist, such as a device."""


class NotImplemented(Exception):
    """The model or an option needs something that Tenon does not have."""


class RuntimeException(Exception):
    """An error of the machine, such as exhausted memory."""


_CODES = {Fail: (1, "FAIL"), InvalidArgument: (2, "INVALID_ARGUMENT"), NoSuchFile: (3, "NO_SUCHFILE"), RuntimeException: (6, "RUNTIME_EXCEPTION"),
          InvalidProtobuf: (7, "INVALID_PROTOBUF"), NotImplemented: (9, "NOT_IMPLEMENTED"), InvalidGraph: (10, "INVALID_GRAPH"),
          EPFail: (11, "EP_FAIL"), NotFound: (12, "NOT_FOUND")}


def _error(kind: type[Exception], sentence: str) -> Exception:
    """Returns an exception with the code in its text."""
    number, name = _CODES[kind]
    return kind(f"[ONNXRuntimeError] : {number} : {name} : {sentence}")


def _plain(error: BaseException) -> str:
    """Returns the text of an exception without the code before it."""
    text = str(error)
    return text.split(" : ", 3)[3] if text.startswith("[ONNXRuntimeError] : ") else text


def _of_run(error: _tenon.Error) -> Exception:
    """Returns the exception for an error of a run."""
    for theirs, kind in ((_tenon.InvalidArgument, InvalidArgument), (_tenon.Unsupported, NotImplemented), (_tenon.DeviceLost, EPFail),
                         (MemoryError, RuntimeException)):
        if isinstance(error, theirs):
            return _error(kind, str(error))
    if isinstance(error, _tenon.Cancelled):
        return _error(Fail, "Exiting due to terminate flag being set to true.")
    return _error(Fail, str(error))


def _of_load(error: _tenon.Error) -> Exception:
    """Returns the exception for an error of loading a model."""
    text = str(error)
    if isinstance(error, _tenon.NotFound):
        return _error(NoSuchFile, f"Load model failed: {text}")
    if isinstance(error, _tenon.InvalidArgument):
        return _error(InvalidProtobuf if "not an ONNX model" in text or "protobuf" in text else InvalidGraph, text)
    return _of_run(error)


def __getattr__(name: str) -> Any:
    import tenon.onnxruntime
    return getattr(tenon.onnxruntime, name)
