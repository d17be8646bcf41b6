// A worker process: takes jobs, one line each, and answers with events. A kernel that crashes, hangs or poisons its CUDA
// context costs one of these, not the campaign.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "harness/record.h"

namespace attest {

/// How the worker reads and keeps records; fixtures/ provides both, so that the harness knows no file format.
struct RecordStore {
  std::function<Record(const std::string& path)> load;
  std::function<void(const std::string& path, const Record& record)> save;
};

struct WorkerOptions {
  int in = 3;   // jobs arrive here; end of file ends the worker
  int out = 4;  // events leave here
  bool cuda = false;
  int threads = 1;  // of libtorch, per worker
  std::map<std::string, std::string> provenance;  // kept in every record
};

/// Returns the exit code.
int run_worker(const WorkerOptions& options, const RecordStore& store);

}  // namespace attest
