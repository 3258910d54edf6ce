/* score.c - how likely each of many texts is behind a prefix: all of them in one forward.
 *
 * The texts are a tree (tree.h). Every token that others follow is a row, once, and sees the prefix
 * and the tokens that led to it: the chains of the tree are sequences of several spans, so the
 * packed forward runs it as it is, keys in the order of the text. The first row repeats the
 * prompt's last token, as a decode's first step does. So a row is the row that its text would have
 * alone.
 *
 * Logits are there for some rows at a time; of each row what is kept is how likely the tokens are
 * that follow it in the tree. */
#include "graph/nodes/layers.h"

/* Rows first .. first + TEC_SCORE_ROWS - 1 of h. */
static void head(struct tec_lower *l, int h, int chunk, int likely)
{
    const struct tec_score_table *t = l->score;
    int first = chunk * TEC_SCORE_ROWS, rest = t->rows.max - first;
    int most = rest < TEC_SCORE_ROWS ? rest : TEC_SCORE_ROWS;
    int logits =
        tec_program_tensor(l->program, "logits", most, l->model->text.vocab, t->chunk + chunk);
    const struct tec_part_rows part = {
        .rows = t->chunk + chunk, .max_rows = most, .in_row = first, .out_row = 0};
    tec_lower_linear_rows(l, &l->weights->head, h, logits, &part, false, "head");
    tec_lower_cap(l, logits);
    tec_lower_tap(l, logits, "score.logits%d", chunk);
    struct tec_call call = tec_call_of(TEC_OP_log_prob, "log_prob");
    call.in[0] = logits;
    call.out[0] = likely;
    call.args.log_prob.first = t->first + first;
    call.args.log_prob.id = t->id;
    call.args.log_prob.max_entries = t->max_entries;
    call.args.log_prob.round = l->model->text.round && l->weights->bf16;
    tec_program_call(l->program, &call);
}

static void lower(struct tec_lower *l)
{
    const struct tec_score_table *t = l->score;
    const struct tec_reading r = {
        .space = l->space, .rows = &t->rows, .tap = l->taps ? "score." : NULL};
    struct tec_built b;
    int h = -1;
    if (tec_layers_begin(&b, l, &r, tec_lower_embed(l, &t->rows, t->token))) {
        (void)tec_layers_run(&b);
        h = tec_layers_leave(&b, true);
    }
    int likely =
        tec_program_fixed(l->program, "likely", t->likely,
                          (size_t)t->max_entries * sizeof *t->likely, t->max_entries, 1, 1, NULL);
    for (int i = 0; i < t->n_chunks; i++)
        head(l, h, i, likely);
}

const struct tec_node_kind tec_node_score = {.name = "score",
                                             .text = "a tree of texts to how likely each is",
                                             .timed = true,
                                             .says = true,
                                             .lower = lower};
