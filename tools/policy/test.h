/* test.h - unit tests of policies, written in Lua: `tectum policy test`.
 *
 * A test file makes up frames and says what the policy must decide (doc/policy-tests.md). It runs
 * in a bounded state of its own, each policy behind the real host. */
#ifndef TEC_TOOLS_POLICY_TEST_H
#define TEC_TOOLS_POLICY_TEST_H

#include "tools/policy/checks.h"

/* Run one test file; every expectation becomes a check whose name begins with "file:line". A test
 * that goes wrong by itself is a check that is not ok, so is a file that expects nothing. `root` is
 * the folder of pipelines/ and policies/. Fails when the file cannot be read or compiled. */
enum tec_status tec_policies_test(const char *path, const char *root, struct tec_checks *checks,
                                  struct tec_heap *heap, struct tec_error *err);

#endif
