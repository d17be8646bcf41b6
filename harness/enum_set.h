// A small set of enumerators, as a bit mask; and the names of enumerators.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// Specialised beside each enum: the names of its enumerators, in order; their number is the enum's size.
template <class E>
struct EnumNames;  // static constexpr std::string_view kNames[]

template <class E>
constexpr size_t enum_size() {
  return std::size(EnumNames<E>::kNames);
}

template <class E>
constexpr std::string_view name_of(E e) {
  return EnumNames<E>::kNames[static_cast<size_t>(e)];
}

/// The enumerator called `name`; false when there is none.
template <class E>
bool from_name(std::string_view name, E& out) {
  for (size_t i = 0; i < enum_size<E>(); ++i)
    if (EnumNames<E>::kNames[i] == name) return out = static_cast<E>(i), true;
  return false;
}

template <class E>
class EnumSet {
 public:
  constexpr EnumSet() = default;
  constexpr EnumSet(std::initializer_list<E> members) {
    for (E e : members) bits_ |= bit(e);
  }
  static constexpr EnumSet all() { return from_bits((uint64_t{1} << enum_size<E>()) - 1); }

  constexpr bool contains(E e) const { return (bits_ & bit(e)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr EnumSet operator&(EnumSet o) const { return from_bits(bits_ & o.bits_); }
  constexpr EnumSet operator|(EnumSet o) const { return from_bits(bits_ | o.bits_); }
  constexpr EnumSet without(E e) const { return from_bits(bits_ & ~bit(e)); }
  constexpr bool operator==(const EnumSet&) const = default;

  std::vector<E> members() const {
    std::vector<E> out;
    for (size_t i = 0; i < enum_size<E>(); ++i)
      if (contains(static_cast<E>(i))) out.push_back(static_cast<E>(i));
    return out;
  }

 private:
  static constexpr uint64_t bit(E e) { return uint64_t{1} << static_cast<unsigned>(e); }
  static constexpr EnumSet from_bits(uint64_t bits) {
    EnumSet s;
    s.bits_ = bits;
    return s;
  }
  uint64_t bits_ = 0;
};

template <>
struct EnumNames<bool> {
  static constexpr std::string_view kNames[] = {"false", "true"};
};

}  // namespace attest
