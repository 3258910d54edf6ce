/* program.h - what the functions of a description compute, as data: a list of calls over values.
 *
 * build.c runs the functions once, at load, and appends a call for each word. A value is named by
 * the call that makes it. From the list follow the tensors that a model reads (program.c), its
 * weights (loading_program.c) and its commands (graph/nodes/built.c). A description has one for
 * what the rows of its text go through, one for those of each picture tower, and one for what its
 * prefill and action make. Immutable once built; in the model's arena. */
#ifndef TEC_GRAPH_MODEL_PROGRAM_H
#define TEC_GRAPH_MODEL_PROGRAM_H

#include "graph/model/model.h"

enum tec_model_word {
#define WORD(word, operands, text) TEC_WORD_##word,
#define VALUE(word, operands, text) TEC_WORD_##word,
#define GIVEN(word, name, text) TEC_WORD_##word,
#define FIELD(word, key, kind, member, needed, text)
#include "graph/model/words.def"
#undef WORD
#undef VALUE
#undef GIVEN
#undef FIELD
    TEC_WORD_COUNT
};

/* The functions of a description, in the order in which they run; those of layers, of its text and
 * of its towers, are programs of their own. */
enum tec_model_part {
    TEC_PART_OF_PREFILL,
    TEC_PART_OF_ACTION,
    TEC_MODEL_PARTS,
    TEC_PART_OF_LAYERS = TEC_MODEL_PARTS
};

enum {
    TEC_MAX_CALLS = 8192,
    TEC_MAX_OPERANDS = 64,
    TEC_MAX_STATES = 16,
    TEC_MAX_VALUE_ROWS = 1 << 22, /* of a picture; other values have TEC_PARSE_MAX at most */
};

/* A norm of each channel whose statistics are constants: (x - mean) / sqrt(var + eps) * weight +
 * bias. It is folded into the convolution in front of it. */
struct tec_fixed_norm {
    const char *weight, *bias, *mean, *var; /* weight NULL = none */
    double eps;
};

/* The calls that read a value; the chunk is read by the call behind the last one. What reads a view
 * of a value (take, beside) reads the value. */
struct tec_value_uses {
    int n, first, last;
};

/* Which rows of a prompt an attention sees. */
enum tec_seen { TEC_SEEN_ALL, TEC_SEEN_PICTURES, TEC_SEEN_REST, TEC_SEEN_KINDS };

/* An attention: its heads, and how many columns keys and values are made of. */
struct tec_attend {
    int heads, kv_heads, head_dim, from;
    double scale; /* of scores; 0: 1 / sqrt(head_dim) */
    double cap;   /* scaled scores s count as cap * tanh(s / cap); 0: as they are */
    int window;   /* a row sees its last so many keys alone; 0: all */
    int turn;     /* which of the program's rotations; -1 = none */
};

/* A call and the value that it makes: float32 [rows, cols]. Of a picture, and of what convolutions
 * make of one, the rows are the pixels of h lines of w, line by line. */
struct tec_model_call {
    enum tec_model_word word;
    enum tec_model_part part;
    const char *file; /* where it stands in the description */
    int line;
    const char *name; /* of its tap and its command; NULL = none */
    const int *in;    /* operands: calls before this one */
    int n_in;
    int rows, cols, h, w; /* h 0: no picture */
    int group;            /* values of one group have one count of rows (tec_row_group) */
    bool constant;        /* known at load */
    bool timed;           /* a row that the time of a step alone decides: known at load for each */
    bool moves;           /* is another value in each step of a flow */
    struct tec_value_uses uses;
    int same; /* the first call with the same tensors, whose weights it shares; -1 = itself */
    /* What the options say; words.def has the word of each. */
    const char *slot_name;
    int slot;
    float mean[3], std[3];
    int first; /* state: its first entry; columns, take: their first one */
    int place; /* state: where its entries stand in a frame's table; attention: which of the kept
                * layers of keys it has, over a prompt those of the text's layer */
    const char *weight, *bias;
    struct tec_fixed_norm norm;
    int rank; /* tensor: 1, a vector, or 2 */
    int side, stride, pad, dilation, frames;
    bool squares; /* conv: where it is float32, four windows are computed together */
    double period, eps;
    double shortest, longest; /* waves; 0: those of period */
    bool closed, cosines;     /* waves */
    bool f32;                 /* the same, activation: of a row of the time */
    int by;                   /* side_by_side: rows of a group */
    bool bf16;                /* matrices are rounded in a bf16 plan */
    bool rounded;             /* norm: so are its weight and its bias */
    int categories, category;
    int scale, shift, gate; /* norm; linear: values; -1 = none */
    bool rms;
    double offset;                          /* norm, attention: added to weights of norms */
    const char *joined[3], *joined_bias[3]; /* attention: q, k, v; gated: gate, up */
    const char *fused, *fused_bias;         /* attention: q, k and v in one tensor, instead */
    const char *norms[2];                   /* attention: of queries, of keys */
    const char *factor;                     /* linear: of each column of the result; NULL = 1 */
    double times;                           /* linear: of the result; 0 = 1 */
    int turn; /* patches, squares, what is normed of them: columns are stored as [turn, all /
               * turn], and lie as [all / turn, turn]; 0: as they are stored */
    bool smooth, corners; /* grid */
    bool planes;          /* squares */
    struct tec_attend attend;
    struct tec_rotation rotation; /* attention of a text */
    struct tec_relative relative; /* the same */
    struct tec_packing packing;   /* of a text: how a checkpoint stores the matrices */
    enum tec_seen sees;
    int lead;       /* attention over a prompt */
    bool projected; /* the same; then */
    int projection; /* which of these it is */
    int among;      /* attention of a prefill: which of its rows that see each other */
    bool copied;    /* take: somebody else than linear reads it */
    enum tec_activation activation;
    int position, over, over_position; /* values; -1 = none */
    int behind;                        /* prompt: a value; -1 = none */
};

/* Noise to actions in `steps` Euler steps: x += action(x, t) / steps. The time of step s of S is
 * s / S, or the whole number floor(s / S * buckets). steps 0: the model is none such. */
struct tec_program_flow {
    int horizon, dim, steps;
    int buckets; /* 0: times are shares */
    bool falls;  /* the time goes from 1 to 0, 1 - s / S, and x -= action(x, t) / steps */
    bool f32;    /* times are rounded to float32, as the model was trained */
};

/* Values that have rows for the same things: how many is one number. */
struct tec_row_group {
    int rows;  /* 0: as many as the prompt has */
    int among; /* which rows of the prefill that see each other they are; -1 = none such */
    int count; /* which of a frame's counts; -1 = it needs none of its own */
};

/* A layer of a text or a tower: its calls are those before the next one's first. */
struct tec_program_layer {
    int first;     /* call */
    int x;         /* call: the rows that enter it */
    int attention; /* call: its attention, whose keys and values are this layer of a frame's */
};

/* Rows of a prefill that see each other, those of a call's value, and the heads of their keys:
 * these have slots that each such attention writes anew. */
struct tec_rows_among {
    int call, kv_heads, head_dim;
};

struct tec_model_program {
    /* Of layers: columns of their rows, 0 = this is another program; whether they are a tower's;
     * the layers, and behind the last one where `leave` begins; whether it has that. Call 0 are the
     * rows. */
    int width;
    bool tower;
    bool projects; /* from what leaves towers to rows of the text's prompt; then width is 0 */
    bool stated;   /* from the robot's state to a row of the text's prompt */
    /* Of a tower: which one it is; the side of its pictures; the patches of one, and rows in front
     * of them; layers whose leaving rows `project` gets beside those of the tower, in rising order.
     */
    int index, image, patch, patches, before;
    int keeps[TEC_MAX_DEEP], n_keeps;
    const struct tec_model_program *towers[TEC_MAX_TOWERS]; /* of what projects: in their order */
    int squares;                    /* patches of a side of the squares that become one row; 1 */
    int deep[TEC_MAX_DEEP], n_deep; /* calls: rows that are added to those of pictures behind the
                                     * text's layers 0, 1, ...; each a product */
    struct tec_program_layer *layers;
    int n_layers;
    bool leaves;
    struct tec_rotation rotations[TEC_MAX_ROTATIONS];
    int n_rotations;
    bool alone; /* it has an action alone, which reads a text's hidden rows */
    struct tec_model_call *calls;
    int n, room;
    int parts[TEC_MODEL_PARTS + 1]; /* the first call of each part; n */
    struct tec_row_group *groups;   /* group 0 is of one row */
    int n_groups, group_room;
    int n_counts; /* counts of groups in a frame's table */
    struct tec_rows_among among[TEC_MAX_TOWERS];
    int n_among;
    int encoded; /* rows of what attentions of an action see of the prefill; 0: as many as the
                  * prompt has */
    int hidden;  /* call that reads a text's hidden rows; -1 = none does */
    int prompt;  /* call: the prompt whose keys a flow's action reads; -1 = there is none such */
    struct tec_program_flow flow;
    int noise;                 /* call of a flow: x; -1 = none */
    int seeing;                /* of an action: rows of which attention is */
    int lead;                  /* over a prompt: the first so many see no own row behind them */
    bool sees[TEC_SEEN_KINDS]; /* which rows of the prefill some attention sees */
    /* Attentions of an action over their own rows, over those of the prefill or over a prompt, and
     * of the last ones over projections. */
    int n_own, n_over, n_projected;
    struct tec_stack kept; /* of an action: what a frame keeps. Attentions over own rows share
                            * places with the others: their keys have other slots */
    int64_t timed;         /* columns of all values of the time */
    int order;             /* rows that are numbered, for taking some of them */
    int result;            /* call: the chunk */
    int states[TEC_MAX_STATES], n_states; /* calls that read the robot's state */
    int n_entries, n_places; /* entries that they read; floats of a frame's table for them */
    int64_t constants;       /* numbers of all constants */
    struct tec_arena *arena; /* while it is built */
    bool inside;             /* while it is built: in a layer */
};

enum { TEC_WORD_GIVEN = -2 };

/* The words as data. `infer` checks the operands and options of a call, whose other members are
 * set, and fills rows, cols, h, w, group, constant and timed. */
struct tec_word_kind {
    const char *name;
    int operands; /* TEC_WORD_GIVEN: an argument of a function */
    enum tec_status (*infer)(struct tec_model_program *program, struct tec_model_call *call,
                             struct tec_error *err);
};
extern const struct tec_word_kind tec_word_kinds[TEC_WORD_COUNT];

/* Whether a word may stand where a program is now; "is no word of ...", and those that may. */
bool tec_model_word_fits(const struct tec_model_program *program, enum tec_model_word word);
void tec_model_words_of(const struct tec_model_program *program, char *text, size_t room);

/* Whether a call reads patches where they lie, and columns in an order that it knows. */
enum tec_status tec_model_patches_read(const struct tec_model_program *program,
                                       const struct tec_model_call *call, struct tec_error *err);

/* Fills `moves` of a call whose operands and options are set. */
void tec_model_call_moves(const struct tec_model_program *program, struct tec_model_call *call);

/* The time of step s of S; of step S, that of actions. */
double tec_model_time(const struct tec_program_flow *flow, int step, int steps);

/* A group for values of so many rows; -1 without memory. One row is always group 0. */
int tec_model_program_group(struct tec_model_program *program, int rows);

/* What a program of layers must be as a whole; fills uses, same, and the sizes that follow. */
enum tec_status tec_model_layers_check(struct tec_model_program *program, struct tec_stack *sizes,
                                       struct tec_error *err);

/* The same of a model's text, and what it must be beside that. */
enum tec_status tec_model_text_check(struct tec_model *model, struct tec_error *err);

/* The same of what projects `patches` patches of each tower to rows of the text. */
enum tec_status tec_model_project_check(struct tec_model_program *program, int width,
                                        struct tec_error *err);

/* The same of what makes a row of the robot's state, in front of a prompt; *entries of it. */
enum tec_status tec_model_state_check(struct tec_model_program *program, int width, int *entries,
                                      struct tec_error *err);

/* Whether a bf16 plan rounds some matrix of a program. */
bool tec_model_program_rounds(const struct tec_model_program *program);

/* Whether an attention over a prompt can read the keys of the model's text; queries then turn as
 * those of its layer do. */
enum tec_status tec_model_text_joins(const struct tec_model *model, struct tec_model_call *call,
                                     struct tec_error *err);

/* Whether an attention makes keys and values of x: they are not those of other rows alone. */
bool tec_model_own_keys(const struct tec_model_program *program, const struct tec_model_call *call);

/* Fills `same`: calls that name one tensor share its weights, attentions and gated products where
 * they name all of theirs alike. A tensor that is named as two different ones is an error. */
enum tec_status tec_model_program_share(struct tec_model_program *program, struct tec_error *err);

/* Fills `uses`: who reads each value. One that nobody reads is an error: it would be computed in
 * every frame. */
enum tec_status tec_model_program_uses(struct tec_model_program *program, struct tec_error *err);

/* Both. */
enum tec_status tec_model_program_links(struct tec_model_program *program, struct tec_error *err);

/* The attention of a layer of a model's text. */
const struct tec_model_call *tec_model_attention(const struct tec_model *model, int layer);

/* What a program as a whole must be, for a model that has these slots and the numbers of its chunk
 * from then on; fills uses, same, slot, counts, states. Errors say where: "file:line: word: ...".
 */
enum tec_status tec_model_program_check(struct tec_model *model, struct tec_error *err);

/* "file:line: word: message" of what is wrong with a call. */
enum tec_status tec_model_call_fail(const struct tec_model_call *call, struct tec_error *err,
                                    const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The tensor of a convolution of so many channels. */
struct tec_expected tec_model_conv_expected(const struct tec_model_call *call, int channels);

/* Lines or columns that are left of `n` by windows of a call. */
int tec_model_call_windows(const struct tec_model_call *call, int n);

/* The position of a pixel by a call of sines: out [cols]. */
void tec_model_call_sines(const struct tec_model_call *call, int pixel, float *out);

/* Sines and cosines of a time by a call of waves: out [cols]. */
void tec_model_call_waves(const struct tec_model_call *call, double t, double *out);

#endif
