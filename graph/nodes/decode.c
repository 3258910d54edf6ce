/* decode.c - up to k steps of greedy text for a batch of requests, wholly on the device.
 *
 * A step forwards one row a request: the newest token, or for a fresh request the last token of its
 * prompt, whose keys are in the shared prefix already; its own go to a slot nobody reads. So every
 * step is alike, and the prefill never runs a query row through its last layer.
 *
 * A request with a prompt of its own reads that first, one token a step, into its private tail:
 * the same steps, but the next input is given. Only a causal text makes it the same as a prefill of
 * both: the frame's prefix was computed without knowing what follows. */
#include "graph/nodes/layers.h"

int tec_lower_embed(struct tec_lower *l, const struct tec_rows *rows, const int *token)
{
    const struct tec_matrix *m = &l->weights->embed;
    int x = tec_program_tensor(l->program, "x", rows->max, m->k, rows->count);
    tec_lower_tokens(l, x, token, rows->count, rows->max, l->zero, l->model->text.scale);
    return x;
}

static void choose(struct tec_lower *l, int logits)
{
    const struct tec_decode_table *t = l->decode;
    struct tec_call call = tec_call_of(TEC_OP_next_token, "next_token");
    struct tec_next_token_args *a = &call.args.next_token;
    call.in[0] = logits;
    /* One tensor stands for all arrays of the table, which lie in one block. */
    call.out[0] = tec_program_fixed(
        l->program, "requests", t->k,
        (size_t)((unsigned char *)(t->tokens + (size_t)t->rows.max * (size_t)t->max_tokens) -
                 (unsigned char *)t->k),
        t->rows.max, 1, 1, NULL);
    a->token = t->token;
    a->pos = t->rows.pos;
    a->slot = t->rows.slot;
    a->visible = t->rows.visible;
    a->tail = t->tail;
    a->prefix = t->prefix;
    a->left = t->left;
    a->done = t->done;
    a->produced = t->produced;
    a->tokens = t->tokens;
    a->eos = t->eos;
    a->ends = l->ends;
    a->n_ends = l->ends ? l->model->text.n_ends : 0;
    a->stop = t->stop;
    a->best = t->best;
    a->max_tokens = t->max_tokens;
    a->forced = t->forced;
    a->waiting = t->waiting;
    a->max_forced = t->max_forced;
    if (t->place) {
        a->place = t->place;
        a->trie = l->trie;
    }
    a->round = l->model->text.round && l->weights->bf16 && !t->temperature; /* then it was */
    tec_program_call(l->program, &call);
}

static void repetition_penalty(struct tec_lower *l, int logits)
{
    const struct tec_decode_table *t = l->decode;
    struct tec_call call = tec_call_of(TEC_OP_repetition_penalty, "repetition_penalty");
    call.out[0] = logits;
    call.args.repetition_penalty.used = t->used;
    call.args.repetition_penalty.token = t->token;
    call.args.repetition_penalty.words = t->words;
    call.args.repetition_penalty.penalty = l->penalty;
    tec_program_call(l->program, &call);
    tec_lower_tap(l, logits, "scores");
}

static void draw(struct tec_lower *l, int logits)
{
    const struct tec_decode_table *t = l->decode;
    struct tec_call call = tec_call_of(TEC_OP_sample, "sample");
    call.out[0] = logits;
    call.args.sample.temperature = t->temperature;
    call.args.sample.top_k = t->top_k;
    call.args.sample.top_p = t->top_p;
    call.args.sample.seed = t->seed;
    call.args.sample.pos = t->rows.pos;
    call.args.sample.round = l->model->text.round && l->weights->bf16;
    tec_program_call(l->program, &call);
}

/* After penalties, before a draw: what is left is drawn from. */
static void logits_mask(struct tec_lower *l, int logits)
{
    struct tec_call call = tec_call_of(TEC_OP_logits_mask, "logits_mask");
    call.out[0] = logits;
    call.args.logits_mask.place = l->decode->place;
    call.args.logits_mask.trie = l->trie;
    tec_program_call(l->program, &call);
}

void tec_lower_cap(struct tec_lower *l, int logits)
{
    if (!(l->model->text.cap > 0.0F))
        return;
    tec_lower_tap(l, logits, "logits_uncapped");
    struct tec_call call = tec_call_of(TEC_OP_soft_cap, "cap");
    call.in[0] = call.out[0] = logits;
    call.args.soft_cap.cap = l->model->text.cap;
    tec_program_call(l->program, &call);
}

void tec_lower_next_tokens(struct tec_lower *l, int h)
{
    int logits = tec_program_tensor(l->program, "logits", l->decode->rows.max, l->model->text.vocab,
                                    l->decode->rows.count);
    tec_lower_linear_into(l, &l->weights->head, h, logits, 0, NULL, false, "head");
    tec_lower_cap(l, logits);
    tec_lower_tap(l, logits, "logits");
    if (l->decode->used)
        repetition_penalty(l, logits);
    if (l->decode->place)
        logits_mask(l, logits);
    if (l->decode->temperature)
        draw(l, logits);
    choose(l, logits);
}

static void lower(struct tec_lower *l)
{
    const struct tec_reading r = {.space = l->space,
                                  .rows = &l->decode->rows,
                                  .moves = &l->decode->moves,
                                  .shifts = &l->decode->shifts,
                                  .tap = l->taps ? "decode." : NULL,
                                  .tap_inside = true};
    struct tec_built b;
    int h = -1;
    tec_program_repeat(l->program, l->decode->k, l->decode->stop);
    int x = tec_lower_embed(l, &l->decode->rows, l->decode->token);
    tec_lower_tap(l, x, "decode.embeds");
    if (tec_layers_begin(&b, l, &r, x)) {
        (void)tec_layers_run(&b);
        h = tec_layers_leave(&b, true);
    }
    tec_lower_tap(l, h, "last_hidden");
    tec_lower_next_tokens(l, h);
    tec_program_repeat_end(l->program);
}

const struct tec_node_kind tec_node_decode = {.name = "decode",
                                              .text = "requests further by k tokens",
                                              .timed = true,
                                              .says = true,
                                              .lower = lower};
