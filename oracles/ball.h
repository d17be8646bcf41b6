// Owners of FLINT's balls: a number that is a midpoint of any precision and a radius within which the true value lies.
#pragma once

#if __has_include(<flint/arb_mat.h>)
#include <flint/arb_mat.h>
#else  // before FLINT 3, Arb was a library of its own
#include <arb_mat.h>
#endif

#include <cstdint>

namespace attest {

/// One ball, 0 at first. Passes for an arb_ptr.
class Ball {
 public:
  Ball() { arb_init(ball_); }
  explicit Ball(double exactly) : Ball() { arb_set_d(ball_, exactly); }
  ~Ball() { arb_clear(ball_); }
  Ball(const Ball&) = delete;
  Ball& operator=(const Ball&) = delete;
  operator arb_ptr() { return ball_; }
  operator arb_srcptr() const { return ball_; }

 private:
  arb_t ball_;
};

/// A binary floating-point number of any precision, 0 at first. Passes for an arf_ptr.
class BigFloat {
 public:
  BigFloat() { arf_init(number_); }
  ~BigFloat() { arf_clear(number_); }
  BigFloat(const BigFloat&) = delete;
  BigFloat& operator=(const BigFloat&) = delete;
  operator arf_ptr() { return number_; }
  operator arf_srcptr() const { return number_; }

 private:
  arf_t number_;
};

/// A matrix of balls, zeros at first. A row is contiguous. Moved, not copied.
class BallMatrix {
 public:
  BallMatrix() : BallMatrix(0, 0) {}
  BallMatrix(int64_t rows, int64_t columns) { arb_mat_init(matrix_, rows, columns); }
  ~BallMatrix() { arb_mat_clear(matrix_); }
  BallMatrix(BallMatrix&& other) noexcept : BallMatrix() { arb_mat_swap(matrix_, other.matrix_); }
  BallMatrix& operator=(BallMatrix&& other) noexcept {
    arb_mat_swap(matrix_, other.matrix_);
    return *this;
  }

  int64_t rows() const { return arb_mat_nrows(matrix_); }
  int64_t columns() const { return arb_mat_ncols(matrix_); }
  arb_ptr at(int64_t row, int64_t column) { return arb_mat_entry(matrix_, row, column); }
  arb_srcptr at(int64_t row, int64_t column) const { return arb_mat_entry(matrix_, row, column); }
  arb_mat_struct* get() { return matrix_; }
  const arb_mat_struct* get() const { return matrix_; }

 private:
  arb_mat_t matrix_;
};

}  // namespace attest
