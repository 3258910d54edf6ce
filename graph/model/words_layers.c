/* words_layers.c - the words of layers, of a text or of a picture tower: where they may stand,
 * their rows, attention over their slots, matrices of 4-bit weights. */
#include "graph/model/words_own.h"

#include <stdio.h>
#include <string.h>

enum { LAYER = 1, FRONT = 2, PROJECT = 4, STATE = 8 };

/* Of a tower's enter, whose layers are not there yet, and of others. */
static int place_of(const struct tec_model_program *p)
{
    bool front = p->tower && !p->inside && p->n_layers == 0;
    return p->stated ? STATE : p->projects ? PROJECT : front ? FRONT : LAYER;
}

bool tec_model_word_fits(const struct tec_model_program *p, enum tec_model_word word)
{
    static const int words[TEC_WORD_COUNT] = {
#define LAYER_WORD(word, where) [TEC_WORD_##word] = where,
#include "graph/model/layer_words.def"
#undef LAYER_WORD
    };
    return (!p->width && !p->projects && !p->stated) || (words[word] & place_of(p)) != 0;
}

void tec_model_words_of(const struct tec_model_program *p, char *text, size_t room)
{
    static const struct {
        const char *name;
        int where;
    } words[] = {
#define LAYER_WORD(word, where) {#word, where},
#include "graph/model/layer_words.def"
#undef LAYER_WORD
    };
    static const char *const owners[] = {[LAYER] = "a layer",
                                         [FRONT] = "a tower's enter",
                                         [PROJECT] = "project",
                                         [STATE] = "chunk.state"};
    int place = place_of(p);
    size_t n = (size_t)snprintf(text, room, "is no word of %s; its words are", owners[place]);
    for (size_t i = 0; i < sizeof words / sizeof words[0] && n < room; i++)
        if (words[i].where & place)
            n += (size_t)snprintf(text + n, room - n, " %s", words[i].name);
}

enum tec_status tec_builder_rows(struct tec_model_program *p, struct tec_model_call *c,
                                 struct tec_error *err)
{
    c->cols = p->width;
    return tec_builder_new_rows(p, c, err);
}

/* Words of eight weights: k in whole words, rows too. */
enum tec_status tec_builder_packed(const struct tec_model_program *p,
                                   const struct tec_model_call *c, const char *weight, int rows,
                                   int cols, struct tec_error *err)
{
    size_t n = weight ? strlen(weight) : 0;
    if (!c->packing.kind || !weight)
        return TEC_OK;
    if (!p->width || p->tower)
        return tec_fail(err, TEC_UNSUPPORTED, "packing is for layers of a text");
    if (rows % 8 != 0 || cols % 8 != 0)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "a 4-bit matrix with a side of %d; must be a multiple of 8",
                        rows % 8 != 0 ? rows : cols);
    if (n < 7 || strcmp(weight + n - 7, ".weight") != 0)
        return tec_fail(err, TEC_MALFORMED, "packed '%s' must end with .weight", weight);
    return TEC_OK;
}

static bool same_rotation(const struct tec_rotation *a, const struct tec_rotation *b)
{
    const double x[] = {a->theta, a->stretch.factor, a->stretch.low, a->stretch.high,
                        a->stretch.original},
                 y[] = {b->theta, b->stretch.factor, b->stretch.low, b->stretch.high,
                        b->stretch.original};
    return a->f32 == b->f32 && a->stretch.kind == b->stretch.kind && memcmp(x, y, sizeof x) == 0 &&
           memcmp(a->sections, b->sections, sizeof a->sections) == 0;
}

/* Of a tower all attentions turn alike, by lines and columns. */
static enum tec_status find_tower_turn(struct tec_model_program *p, struct tec_model_call *c,
                                       struct tec_error *err)
{
    if (p->before || c->rotation.sections[0] || c->rotation.stretch.kind != TEC_STRETCH_NONE)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "a tower's rotation has theta and f32, and no rows stand in front of "
                        "patches");
    if (c->attend.head_dim % 4 != 0)
        return tec_fail(err, TEC_MALFORMED, "a tower's rotation needs a head_dim of fours, is %d",
                        c->attend.head_dim);
    if (p->n_rotations && !same_rotation(&p->rotations[0], &c->rotation))
        return tec_fail(err, TEC_UNSUPPORTED, "a tower has one rotation");
    p->rotations[0] = c->rotation;
    p->n_rotations = 1;
    c->attend.turn = TEC_MAX_ROTATIONS + p->index;
    return TEC_OK;
}

/* Three positions a row are of all layers. */
static enum tec_status check_sections(const struct tec_model_program *p,
                                      const struct tec_model_call *c, struct tec_error *err)
{
    const int *s = c->rotation.sections;
    bool any = s[0] || (p->n_rotations && p->rotations[0].sections[0]);
    if (any && p->n_rotations && !same_rotation(&p->rotations[0], &c->rotation))
        return tec_fail(err, TEC_UNSUPPORTED, "with sections a text has one rotation");
    if (s[0] && s[0] + s[1] + s[2] != c->attend.head_dim / 2)
        return tec_fail(err, TEC_MALFORMED, "sections of %d pairs; a head of %d has %d",
                        s[0] + s[1] + s[2], c->attend.head_dim, c->attend.head_dim / 2);
    return TEC_OK;
}

/* Which table of angles an attention has: those that turn alike share it. */
static enum tec_status find_turn(struct tec_model_program *p, struct tec_model_call *c,
                                 struct tec_error *err)
{
    struct tec_attend *a = &c->attend;
    if (!(c->rotation.theta > 0.0))
        return TEC_OK;
    if (p->tower)
        return find_tower_turn(p, c, err);
    TEC_TRY(check_sections(p, c, err));
    if (a->head_dim % 2 != 0)
        return tec_fail(err, TEC_MALFORMED, "a rotation needs an even head_dim, is %d",
                        a->head_dim);
    for (a->turn = 0; a->turn < p->n_rotations; a->turn++)
        if (same_rotation(&p->rotations[a->turn], &c->rotation))
            return TEC_OK;
    if (p->n_rotations == TEC_MAX_ROTATIONS)
        return tec_fail(err, TEC_UNSUPPORTED, "a text has more than %d rotations",
                        TEC_MAX_ROTATIONS);
    p->rotations[p->n_rotations++] = c->rotation;
    return TEC_OK;
}

static enum tec_status check_numbers(const struct tec_model_call *c, struct tec_error *err)
{
    const struct tec_attend *a = &c->attend;
    return a->scale >= 0.0 && a->cap >= 0.0 && a->scale <= 1e6 && a->cap <= 1e6
               ? TEC_OK
               : tec_fail(err, TEC_MALFORMED, "scale %g and cap %g must not be negative", a->scale,
                          a->cap);
}

/* Rows of a picture have no order. */
static enum tec_status check_tower(const struct tec_model_program *p,
                                   const struct tec_model_call *c, struct tec_error *err)
{
    bool ordered = c->attend.window || c->relative.name;
    return !p->tower || !ordered
               ? TEC_OK
               : tec_fail(err, TEC_UNSUPPORTED,
                          "window and relative are of a text: rows of a picture have no order");
}

/* Of one layer after the other: its keys are that layer of what a frame keeps of a text. */
enum tec_status tec_builder_layer_attention(struct tec_model_program *p, struct tec_model_call *c,
                                            struct tec_error *err)
{
    const struct tec_attend *a = &c->attend;
    int width = tec_builder_operand(p, c, 0)->cols;
    if (!p->inside)
        return tec_fail(err, TEC_UNSUPPORTED, "belongs to a layer");
    if (p->layers[p->n_layers].attention >= 0)
        return tec_fail(err, TEC_UNSUPPORTED, "is a second one; a layer has one");
    if (c->over >= 0 || c->sees != TEC_SEEN_ALL)
        return tec_fail(err, TEC_UNSUPPORTED, "over and sees are of a flow's action");
    TEC_TRY(check_numbers(c, err));
    TEC_TRY(check_tower(p, c, err));
    TEC_TRY(find_turn(p, c, err));
    for (int i = 0; i < 3; i++)
        TEC_TRY(tec_builder_packed(p, c, c->joined[i], (i ? a->kv_heads : a->heads) * a->head_dim,
                                   width, err));
    p->layers[p->n_layers].attention = p->n;
    c->attend.from = width;
    c->place = p->n_layers;
    p->kept.layers = c->place + 1;
    return TEC_OK;
}
