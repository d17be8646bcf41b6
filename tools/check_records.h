// Faults of registered records that no compiler sees.
#pragma once

namespace attest {

/// Throws Error with one sentence that names the record: two of one name, a name with other characters than
/// A-Z a-z 0-9 _ . : @ + -, a function that is missing, a promise or a known failure that is no property. Called when the program
/// starts, and after libraries of --load have registered records of their own.
void check_records();

}  // namespace attest
