#!/usr/bin/env python3
"""Quantises models that export.py wrote, with ONNX Runtime's quantiser, and writes NAME_qdq.onnx.

    VENV/bin/python quantise.py FOLDER [--models resnet50,bert_base]

Needs onnx and onnxruntime. Weights are i8 (convolutions: one scale per channel); activations are u8, with ranges measured
on a few random inputs. Every quantised op has QuantizeLinear and DequantizeLinear around it.
"""

import argparse
import pathlib

import numpy as np
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

import compare

MODELS = {"resnet50": "1x3x224x224", "mobilenet_v2": "1x3x224x224", "bert_base": "1x128"}  # the case of compare.py
                                                                                           # whose inputs are used for
                                                                                           # calibration


class Samples(CalibrationDataReader):
    def __init__(self, make, count):
        self.left = iter([make(np.random.default_rng(seed)) for seed in range(count)])

    def get_next(self):
        return next(self.left, None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--samples", type=int, default=2)
    args = parser.parse_args()
    for name in args.models.split(","):
        source, prepared = args.folder / f"{name}.onnx", args.folder / f"{name}_prepared.onnx"
        quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
        make = compare.CASES[name][MODELS[name]]
        quantize_static(
            str(prepared),
            str(args.folder / f"{name}_qdq.onnx"),
            Samples(make, args.samples),
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            per_channel=name != "bert_base",
        )
        prepared.unlink()
        print(f"{name}_qdq.onnx", flush=True)


if __name__ == "__main__":
    main()
