/* gate.h - the gate: is a policy fit to be let on a robot? `tectum policy check`.
 *
 * The policy plans in the real frame loop on a virtual clock with the robot's own costs, under more
 * requests than there are request slots. doc/policy-tests.md says what each check means. */
#ifndef TEC_TOOLS_POLICY_GATE_H
#define TEC_TOOLS_POLICY_GATE_H

#include "tools/cli/command.h"
#include "tools/policy/checks.h"

struct tec_gate_options {
    const char *policy;   /* a file or a bundled name; NULL = the pipeline's */
    const char *pipeline; /* a file */
    const char *costs;    /* a file */
    int frames;           /* of each of the five runs */
    int patience;         /* frames a request may wait for a token */
    double most_snapped;  /* percent of rows whose k may be moved to a captured point */
    bool saturated;       /* frame follows frame; else one each period */
    uint64_t seed;        /* of the workload */
};

/* Run all checks; every one of them is in `checks` afterwards. A policy that is unfit is no
 * failure; one that cannot be loaded, or files that cannot be read, are. */
enum tec_status tec_policies_gate(struct tec_invocation *call,
                                  const struct tec_gate_options *options, struct tec_checks *checks,
                                  struct tec_error *err);

#endif
