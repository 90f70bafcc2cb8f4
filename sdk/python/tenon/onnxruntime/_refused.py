"""The parts of ONNX Runtime that Tenon does not have: one table, whose sentences the errors and ONNXRUNTIME.md use."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from tenon.onnxruntime.capi import onnxruntime_pybind11_state as errors

# By name: the reason, and what to do instead.
REFUSED = {
    "ORT format": "files in ONNX Runtime's own format are not read; give the .onnx file that they were made from",
    "SparseTensor": "all tensors are dense; give a dense array",
    "OrtValue.ort_value_from_sparse_tensor": "all tensors are dense; give a dense array",
    "OrtValue.as_sparse_tensor": "all tensors are dense; call numpy()",
    "SessionOptions.optimized_model_filepath": "the optimised model is a program of Tenon and cannot be written as ONNX",
    "SessionOptions.register_custom_ops_library": "libraries of ONNX Runtime's custom operators cannot be loaded; functions of the model, and ops of Tenon, can take their place",
    "SessionOptions.add_initializer": "weights cannot be replaced by name; declare the initialiser as an input of the model and feed it",
    "SessionOptions.add_external_initializers": "weights cannot be replaced by name; declare the initialiser as an input of the model and feed it",
    "SessionOptions.add_external_initializers_from_files_in_memory": "external weights are read from files; set the entry session.model_external_initializers_file_folder_path",
    "SessionOptions.add_free_dimension_override_by_denotation": "denotations of axes are not read; use add_free_dimension_override_by_name",
    "SessionOptions.add_provider_for_devices": "devices are named; pass providers=[('TenonExecutionProvider', {'device': 'cuda:0'})]",
    "SessionOptions.set_provider_selection_policy": "devices are named; pass providers=[('TenonExecutionProvider', {'device': 'cuda:0'})]",
    "SessionOptions.set_provider_selection_policy_delegate": "devices are named; pass providers=[('TenonExecutionProvider', {'device': 'cuda:0'})]",
    "SessionOptions.set_load_cancellation_flag": "loading cannot be cancelled from another thread; Ctrl-C stops it",
    "SessionOptions.set_ep_context_data_read_func": "models that another runtime compiled are not read",
    "RunOptions.add_active_adapter": "adapters are not read; merge them into the weights of the model",
    "InferenceSession.get_provider_graph_assignment_info": "use tenon_model.run(feeds, report=True), which lists where each node ran and why",
    "InferenceSession.run_with_ortvaluevector": "use run_with_ort_values",
    "InferenceSession.get_tuning_results": "tuned kernels are kept by Tenon itself, in its cache",
    "InferenceSession.set_tuning_results": "tuned kernels are kept by Tenon itself, in its cache",
    "InferenceSession.set_ep_dynamic_options": "a session's options are fixed; make another session",
    "InferenceSession.get_input_memory_infos": "use tenon_model.device",
    "InferenceSession.get_output_memory_infos": "use tenon_model.device",
    "InferenceSession.get_input_epdevices": "use tenon_model.device",
    "IOBinding.bind to a pointer on a device": "an address says nothing about its owner; use OrtValue.from_dlpack, which shares the memory of a tensor on any device",
    "LoraAdapter": "adapters are not read; merge them into the weights of the model",
    "AdapterFormat": "adapters are not read; merge them into the weights of the model",
    "ModelCompiler": "models are compiled when they are loaded; `tenon compile` writes a program ahead of time",
    "ModelPackage": "model packages are not read; give the .onnx file in the package",
    "OrtArenaCfg": "Tenon has one allocator per device; TENON_MEMORY_LIMIT limits it",
    "OrtMemoryInfo": "Tenon has one allocator per device; TENON_MEMORY_LIMIT limits it",
    "OrtEpDevice": "tenon.devices() lists the devices",
    "get_ep_devices": "tenon.devices() lists the devices",
    "create_and_register_allocator": "Tenon has one allocator per device; TENON_MEMORY_LIMIT limits it",
    "create_and_register_allocator_v2": "Tenon has one allocator per device; TENON_MEMORY_LIMIT limits it",
    "register_execution_provider_library": "Tenon's plug-ins are found in its plug-in folders; TENON_PLUGIN_PATH names further ones",
    "unregister_execution_provider_library": "Tenon's plug-ins are found in its plug-in folders; TENON_PLUGIN_PATH names further ones",
    "set_global_thread_pool_sizes": "the threads are those of the process; set TENON_THREADS before it starts",
    "set_default_logger_callback": "set TENON_LOG, which writes to the standard error stream",
}

# Entries of SessionOptions.add_session_config_entry that would change results: the values with which they change
# nothing.
REFUSED_ENTRIES = {
    "session.set_denormal_as_zero": (("0",), "denormal numbers are kept"),
    "session.load_model_format": (("ONNX", "onnx", ""), "files in ONNX Runtime's own format are not read"),
    "session.disable_cpu_ep_fallback": (("0",), "an op that a device lacks is decomposed or computed on the host; run(..., report=True) of tenon_model lists such ops"),
    "ep.context_enable": (("0",), "models that a provider compiled are not written"),
}


def refusal(name: str) -> str:
    return f"tenon.onnxruntime has no {name}: {REFUSED[name]}."


def refuse(name: str) -> NoReturn:
    """Raises NotImplemented with the sentence of the table."""
    raise errors._error(errors.NotImplemented, refusal(name))


Class = TypeVar("Class", bound=type)


def _refusing(name: str) -> Any:
    def method(*args: Any, **kwargs: Any) -> NoReturn:
        refuse(name)

    method.__name__, method.__qualname__, method.__doc__ = name.rpartition(".")[2], name, refusal(name)
    return staticmethod(method)


def with_refusals(cls: Class) -> Class:
    """Gives a class the methods that the table refuses by "Class.method"."""
    for name in REFUSED:
        owner, _, method = name.partition(".")
        if owner == cls.__name__ and method.isidentifier() and method not in cls.__annotations__:
            setattr(cls, method, _refusing(name))
    return cls
