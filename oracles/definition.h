// What both operators share: z = scale·q·k over the visible keys of a row, out = Σ weight·v, and the gradients once the
// weights and dz are known. An operator supplies the two steps between: logits → weights, and dP → dz. Formulas: README.md.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/reference.h"
#include "oracles/error_terms.h"
#include "oracles/wide.h"

namespace attest {

/// One visible key of one query. `*_error` are absolute first-order errors of a kernel's fp32 values.
struct Key {
  int64_t index = 0;
  Wide z;                    // scale · q·k
  double z_dot = 0;          // |scale| Σ|q||k|
  ErrorTerms z_error;
  Wide weight;               // P or A
  ErrorTerms weight_error;
  double flush = 0;          // of the weight, in η: what is lost where it underflows in the kernel's own scaling (forward)
  Wide beta, rest;           // stick-breaking: σ(z) and σ(−z)
  Wide dp;                   // dout·v
  double dp_dot = 0;         // Σ|dout||v|
  ErrorTerms dp_error;
  Wide dz;
  ErrorTerms dz_error;
  double dz_trivial = 0;     // a bound on |dz| that subtracts nothing
};

/// One query: its visible keys, at least one, ascending.
struct Row {
  std::vector<Key> keys;
  int64_t head_dim = 0, head_dim_v = 0;
  double dlse = 0;           // gradient of lse or rem
  Wide lse;                  // lse or rem
  ErrorTerms lse_error;
  double lse_trivial = 0;
};

struct Definition {
  std::string oracle;                   // name
  double no_key_lse = 0;                // lse or rem of a row without visible key
  std::function<void(Row&)> forward;    // sets weight, weight_error, flush; lse and its fields
  std::function<void(Row&)> backward;   // sets dz, dz_error, dz_trivial; may widen weight_error for gradients
};

/// Of inputs with sequences, each alone. Throws UsageError where a visible input is NaN or infinite: there the operators define nothing.
Reference evaluate(const Inputs& inputs, const Definition& definition);

}  // namespace attest
