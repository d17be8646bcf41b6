// Which cells a fixture is judged by: those named on the command line, else the recorded one, else (a user's own data) all.
#pragma once

#include <string>
#include <vector>

#include "harness/job.h"
#include "tools/select.h"

namespace attest {

struct Record;

/// Adds what the record says where the command line says nothing: its variant, and for a torch: variant its device. Then
/// prepares the selection. Throws UsageError, naming the libraries that the variant came from, when it is not there.
void prepare_for(const Record& record, const std::string& path, Selection& selection);

/// `path` is for the sentence. Throws UsageError when nothing is left.
std::vector<Cell> cells_of(const Record& record, const std::string& path, const Selection& selection);

}  // namespace attest
