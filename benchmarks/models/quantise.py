#!/usr/bin/env python3
"""Writes narrow forms of models that export.py wrote, with ONNX Runtime's tools.

    VENV/bin/python quantise.py FOLDER [--models resnet50_qdq,text_encoder_int8,bert_base_f16,...]

Needs onnx and onnxruntime.

NAME_qdq: weights are i8 (convolutions: one scale per channel); activations are u8, with ranges measured on a few random
  inputs. Every quantised op has QuantizeLinear and DequantizeLinear around it.
NAME_int8: weights of matrix products are i8; activations are quantised over their range in each run.
NAME_f16: all numbers are f16, except inputs and outputs.
"""

import argparse
import pathlib

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from onnxruntime.transformers.float16 import convert_float_to_float16

import compare

# The case of compare.py whose inputs are used for calibration.
CALIBRATED = {"resnet50": "1x3x224x224", "mobilenet_v2": "1x3x224x224", "bert_base": "1x128"}


class Samples(CalibrationDataReader):
    def __init__(self, make, count):
        self.left = iter([make(np.random.default_rng(seed)) for seed in range(count)])

    def get_next(self):
        return next(self.left, None)


def write_qdq(source, target, samples):
    prepared = target.with_suffix(".prepared")
    quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
    make = compare.CASES[source.stem][CALIBRATED[source.stem]]
    quantize_static(
        str(prepared),
        str(target),
        Samples(make, samples),
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        per_channel=source.stem != "bert_base",
    )
    prepared.unlink()


def write_int8(source, target, _):
    quantize_dynamic(str(source), str(target), weight_type=QuantType.QInt8)


def write_f16(source, target, _):
    onnx.save(convert_float_to_float16(onnx.load(str(source)), keep_io_types=True), str(target))


FORMS = {"qdq": write_qdq, "int8": write_int8, "f16": write_f16}
MODELS = [name for name in compare.CASES if name.rpartition("_")[2] in FORMS]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--samples", type=int, default=2)
    args = parser.parse_args()
    for name in args.models.split(","):
        source, _, form = name.rpartition("_")
        FORMS[form](args.folder / f"{source}.onnx", args.folder / f"{name}.onnx", args.samples)
        print(f"{name}.onnx", flush=True)


if __name__ == "__main__":
    main()
