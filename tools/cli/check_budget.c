/* check_budget.c - holds what a pipeline takes to its budgets, and says what makes it less. */
#include "tools/cli/check_budget.h"

#include "base/byte_text.h"

static void check_host(struct tec_diagnostics *d, const struct tec_pipeline *p,
                       const struct tec_measured *m)
{
    char need[24], staging[24], kept[24], captures[24], budget[24];
    if (!p->memory.host || m->host <= p->memory.host)
        return;
    struct tec_where whole = p->memory.where.file ? p->memory.where : p->where;
    struct tec_diagnostic *entry = tec_diagnostics_add(
        d, TEC_E040, tec_decl_place(&p->memory.places, "host", whole),
        "host memory needs %s (keys and values on their way to prompts %s, kept "
        "in tiers.host %s, captures %s), budget is %s",
        tec_byte_text(need, m->host), tec_byte_text(staging, m->memory.staging),
        tec_byte_text(kept, m->memory.kept), tec_byte_text(captures, m->bytes.captures),
        tec_byte_text(budget, p->memory.host));
    tec_diagnostics_help(d, entry,
                         "lower tiers.host, max_segments or tokens_each, or raise memory.host to "
                         "what the machine has");
}

/* What makes the largest of a plan's bytes fewer. */
static const char *less_of(const struct tec_byte_plan *b)
{
    if (b->weights >= b->kv && b->weights >= b->activations)
        return "weights are most of it: quantize = \"int8\" or \"int4\" of the model makes them "
               "fewer";
    if (b->kv >= b->activations)
        return "keys and values are most of it: lower tokens, slots or tiers.gpu of the resources";
    return "activations are most of it: lower capture.batch and capture.sessions, or tokens of "
           "kv.frame";
}

static void check_device(struct tec_diagnostics *d, const struct tec_pipeline *p,
                         const struct tec_byte_plan *bytes)
{
    char need[24], weights[24], rest[24], budget[24];
    if (!p->memory.device || bytes->total <= p->memory.device)
        return;
    struct tec_where whole = p->memory.where.file ? p->memory.where : p->where;
    struct tec_diagnostic *entry = tec_diagnostics_add(
        d, TEC_E040, tec_decl_place(&p->memory.places, "device", whole),
        "static plan needs %s (weights %s + resources %s), budget is %s",
        tec_byte_text(need, bytes->total), tec_byte_text(weights, bytes->weights),
        tec_byte_text(rest, bytes->total - bytes->weights),
        tec_byte_text(budget, p->memory.device));
    tec_diagnostics_help(d, entry,
                         "%s, or raise memory.device; tectum graph --compiled -T text "
                         "shows what takes it",
                         less_of(bytes));
}

void tec_cli_check_budget(struct tec_diagnostics *d, const struct tec_pipeline *p,
                          const struct tec_measured *m)
{
    check_device(d, p, &m->bytes);
    check_host(d, p, m);
}
