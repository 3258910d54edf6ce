/* built.c - lowers a model's program: a function for each word. Words know no programs: what runs
 * another one (pictures.c, prefill.c) does so between its calls. */
#include "graph/nodes/built.h"

static int (*const words[TEC_WORD_COUNT])(struct tec_built *b, int at) = {
#define WORD(word, operands, text) [TEC_WORD_##word] = tec_built_##word,
#define VALUE(word, operands, text)
#define GIVEN(word, name, text)
#define FIELD(word, key, kind, member, needed, text)
#include "graph/model/words.def"
#undef WORD
#undef VALUE
#undef GIVEN
#undef FIELD
};

/* A copy of a value with a name, unless it was made among others. A product that a sum computes is
 * computed once more alone, without what its rows are multiplied by. */
static void tap(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    if (!b->l->taps || !c->name || b->settled[at])
        return;
    int y = tec_built_value(b, at);
    if (y < 0 && c->word == TEC_WORD_linear) {
        y = tec_built_new(b, at, "tap");
        tec_built_multiply(b, at, y);
    }
    tec_built_tap(b, y, c->name);
}

int tec_built_word(struct tec_built *b, int at)
{
    enum tec_model_word word = b->p->calls[at].word;
    return words[word] ? words[word](b, at) : b->tensor[at];
}

void tec_built_made(struct tec_built *b, int at, int tensor)
{
    b->tensor[at] = tensor;
    tap(b, at);
    tec_built_settle(b, at);
}

void tec_built_calls(struct tec_built *b, int from, int to, bool moves)
{
    const struct tec_model_program *p = b->p;
    for (int i = from; i < to && b->l->program->status == TEC_OK; i++) {
        if (p->calls[i].timed || p->calls[i].moves != moves)
            continue;
        tec_built_made(b, i, tec_built_word(b, i));
    }
}
