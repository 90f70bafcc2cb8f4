// The kernels of recurrent layers, per dispatch target. T is float or double.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// dst[r] = rows[r] times packed panels, plus bias, or plus dst if `adds`.
template <class T>
struct PanelProduct {
  const T* const* rows;  // `count` of them, of `depth` numbers each
  int64_t count;
  int64_t depth;
  const T* weights;  // for each panel [depth, RecurrentKernels::columns]
  int64_t panels;
  const T* bias;  // by column; NULL: none
  T* dst;
  int64_t dst_row;  // numbers between rows
  bool adds;
};

// One step of one element of the batch, for n elements of its state. Pointers refer to the first of them.
template <class T>
struct CellStep {
  T* gates;  // the sums of each gate, `gate_step` apart: i, o, f and c of an LSTM, z, r and h of a GRU
  int64_t gate_step;
  int64_t n;
  const T* old_h;
  T* h;
  T* c = nullptr;               // LSTM: read and written
  const T* peephole = nullptr;  // LSTM: weights for i, o and f, `peephole_step` apart; NULL: none
  int64_t peephole_step = 0;
  const T* state_sums = nullptr;  // GRU: if not NULL, is multiplied by r and added to the sums of h
};

// The rule of all steps.
template <class T>
struct CellRule {
  int32_t cell = 0;  // EP_CELL_*
  bool coupled = false;
  bool clips = false;
  T most = 0;  // if `clips`: sums are limited to [-most, most]
};

template <class T>
struct RecurrentKernels {
  int64_t columns;  // columns of a panel
  void (*product)(const PanelProduct<T>& product);
  // h = the new state.
  void (*state)(const CellRule<T>& rule, const CellStep<T>& step);
  // GRU: h = the gate r times the old state.
  void (*reset)(const CellRule<T>& rule, const CellStep<T>& step);
};

template <class T>
RecurrentKernels<T> recurrent_kernels(SimdLevel level);
template <>
RecurrentKernels<float> recurrent_kernels(SimdLevel level);
template <>
RecurrentKernels<double> recurrent_kernels(SimdLevel level);

}  // namespace tenon::provider::cpu
