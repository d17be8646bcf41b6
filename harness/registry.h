// Registry<T>: name → record. Plug-in files register themselves; duplicates are recorded and reported by main.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace attest {

template <class T>
class Registry {
 public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }
  void add(T record) {
    std::string name = record.name;
    if (!records_.emplace(name, std::move(record)).second) duplicates_.push_back(name);
  }
  const T* find(const std::string& name) const {
    auto it = records_.find(name);
    return it == records_.end() ? nullptr : &it->second;
  }
  /// Sorted by name.
  std::vector<const T*> all() const {
    std::vector<const T*> out;
    for (const auto& [name, record] : records_) out.push_back(&record);
    return out;
  }
  const std::vector<std::string>& duplicates() const { return duplicates_; }

 private:
  std::map<std::string, T> records_;
  std::vector<std::string> duplicates_;
};

/// `static const Register<Property> registered{{.name = …}};`
template <class T>
struct Register {
  explicit Register(T record) { Registry<T>::instance().add(std::move(record)); }
};

}  // namespace attest
