/* commands.c - prints the commands of each captured part, so that two plans can be compared. */
#include "tools/picture/commands.h"

#include <inttypes.h>
#include <stddef.h>

static void print_tensor(const struct tec_program *program, int id, const unsigned char *base,
                         FILE *out)
{
    if (id < 0)
        return;
    const struct tec_tensor *t = &program->tensors[id];
    fprintf(out, " %s[%dx%d/%d]", t->name ? t->name : "?", t->rows, t->cols, t->ld);
    if (!t->fixed)
        fprintf(out, "@%td", t->at - base);
}

/* How the weights of a product, or the rows that an attention or an embedding reads, are kept. */
static const char *kept(const struct tec_call *call)
{
    if (call->op == TEC_OP_linear && call->args.gemm.group)
        return " int4";
    return call->int8 ? " int8" : call->bf16 ? " bf16" : "";
}

static void print_call(const struct tec_program *program, const struct tec_call *call,
                       const unsigned char *base, FILE *out)
{
    const struct tec_counts full = {NULL, 0};
    const struct tec_cost cost = tec_ops[call->op].op->cost(call, &full);
    fprintf(out, "%c%c%s '%s'", call->barrier ? '|' : ' ', call->passes ? '>' : ' ',
            tec_ops[call->op].name, call->label ? call->label : "");
    for (int i = 0; i < TEC_OP_INPUTS; i++)
        print_tensor(program, call->in[i], base, out);
    fputs(" ->", out);
    for (int i = 0; i < TEC_OP_OUTPUTS; i++)
        print_tensor(program, call->out[i], base, out);
    fprintf(out, " rows %d %d%s; %" PRId64 " %" PRId64 " %" PRId64 " FLOP, %" PRId64, call->in_row,
            call->out_row, kept(call), cost.products, cost.products_f32, cost.other, cost.weights);
    fprintf(out, " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " bytes\n", cost.read,
            cost.written, cost.kv_read, cost.kv_written);
}

static void print_step(const struct tec_program *program, const struct tec_step *step,
                       const unsigned char *base, FILE *out)
{
    if (step->cut)
        fputs("cut\n", out);
    if (step->joins)
        fputs("join\n", out);
    if (step->branch)
        fputs("branch ", out);
    switch (step->kind) {
    case TEC_STEP_CALL:
        print_call(program, &step->call, base, out);
        return;
    case TEC_STEP_MARK:
        fprintf(out, "mark %d\n", step->mark);
        return;
    case TEC_STEP_REPEAT:
        fprintf(out, "repeat%s\n", step->stop ? " until stopped" : "");
        return;
    case TEC_STEP_REPEAT_END:
        fputs("end of repeat\n", out);
        return;
    }
}

static void print_plan(struct tec_plan *plan, const char *chain, FILE *out)
{
    for (int i = 0; i < plan->n_parts; i++) {
        const struct tec_plan_part *part = &plan->parts[i];
        size_t bytes;
        const unsigned char *base = tec_plan_activations(plan, part, &bytes);
        fprintf(out, "part %s/%s commands %d slices %d stream %d planned %zu table %zu\n", chain,
                part->name, tec_capture_commands(part->capture), part->slices ? part->n_slices : 0,
                (int)part->stream, part->program.planned, part->block.size);
        for (int s = 0; s < part->program.n_steps; s++)
            print_step(&part->program, &part->program.steps[s], base, out);
    }
}

void tec_commands_print(const struct tec_engine *engine, FILE *out)
{
    for (int i = 0; i < engine->n_chains; i++)
        if (!engine->chains[i].joins)
            print_plan(engine->chains[i].plan, engine->options.pipeline->chains[i].name, out);
}
