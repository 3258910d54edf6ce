/* tables.h - frame tables: everything that changes from launch to launch, as arrays at fixed device
 * addresses that captures read. The host fills its copy, and kernels/device.h copies it to the
 * device before the replay. */
#ifndef TEC_GRAPH_NODES_TABLES_H
#define TEC_GRAPH_NODES_TABLES_H

#include "base/arena.h"
#include "base/error.h"
#include "graph/model/model.h"
#include "kernels/device.h"

#include <stdint.h>

/* Row segments of one packed forward: for each row its place, position and what it may see. */
struct tec_rows {
    int *count; /* live rows */
    int max;
    int *pos, *slot, *seq, *visible; /* [max] */
    struct tec_seq *seqs;
    struct tec_span *spans;
};

/* Runs of slots to copy, in order. */
struct tec_moves {
    int *count;
    int max;
    struct tec_move *list; /* [max]; NULL = nothing is ever copied */
};

/* A prefill and the action chunks that read it. Pointers into one block; the same layout in the
 * host's shadow and on the device. */
struct tec_prefix_table {
    int *n_pictures, *n_patches; /* patches of all pictures */
    int *each;                   /* patches of each picture, where they differ in size */
    int *n_image;                /* rows of the prefix that they become */
    int *n_known;                /* rows of pictures that an earlier prefill made; NULL = never */
    int *around, *n_around, *first_around,
        max_around;           /* tokens around pictures, rows behind the text */
    int *lead;                /* [1] the token before the pictures, where the model has one */
    int *n_text, *first_text; /* ids behind the pictures; the row of the first of them */
    int *ids;                 /* [max_ids] */
    int max_ids;
    int *n_zeros, *first_zero, *zeros; /* rows of zeros that a head reads: constants, [n_zeros] */
    int *in_order;                     /* 0, 1, 2 ...: constant; [n_zeros], or of a flow [order] */
    int *end, *end_row;                /* the token behind them, and its row: constants */
    /* Rows of each tower: what stands before the patches, of every picture that there can be; then
     * the patches of the pictures that there are. A sequence a picture. */
    struct tec_rows towers[TEC_MAX_TOWERS];
    int *n_before[TEC_MAX_TOWERS]; /* constant: rows before all patches; NULL = none */
    struct tec_rows prefix;        /* leading token, pictures' rows, text, a row of each other
                                    * sequence */
    struct tec_rows last;    /* of those the last one of each sequence; sequences are prefix's */
    int *last_row;           /* [last.max] where they stand in prefix */
    struct tec_moves moves;  /* what attention reads, into a place where it lies together */
    struct tec_moves shifts; /* of a ring whose sequences move: behind each layer's attention */
    struct tec_rows suffix;  /* state rows of all observations, then their action rows, each over
                              * its prefix and its part of the scratch; queries over scratch */
    /* Rows of a program's action as they see the prefix; of a flow's, its pictures, or the rest. */
    struct tec_rows asked, pictured, rest;
    struct tec_rows features; /* of a flow: the prefix's rows behind the text, which see all; their
                               * pos is the place of a row in the sequence */
    int *turns, *n_turns; /* of a rotation with sections: of each pair of each row of pictures which
                           * pair of the table of angles turns it; NULL = there is none such */
    /* Of a program: rows of its prefill that see each other; counts of other rows (tec_row_group).
     * Constants. */
    struct tec_rows among[TEC_MAX_TOWERS];
    int *counts;
    struct tec_rows across;       /* rows of actions over projections: places of `keys` */
    int *keys, *n_keys, max_keys; /* slots of the keys that those are projections of */
    int most;                     /* observations that there is room for */
    int *n_horizon;               /* action rows */
    int *n_states, *one;     /* state rows of the suffix, or 1 where a head reads it; a constant */
    const uint8_t **picture; /* [max_pictures] u8 [size, size, 3], device memory */
    uint8_t *pixels;         /* device memory for those, or NULL: it reads the host's */
    size_t picture_size;     /* bytes of the largest */
    int *n_fixed;            /* first rows of `noise` that are given actions; NULL = never any */
    int *given;   /* [most] how many of them are each observation's; NULL = there is one */
    float *noise; /* [most x horizon, ld]: the flow's x, overwritten by the action node; where rows
                   * of an observation stand: tec_suffix_runs */
    float *state; /* [most, ld] */
    float *previous, *pulls; /* [most x horizon, ld] chunks that the new ones are pulled to, and how
                              * much each of their rows; NULL = no guidance */
    int ld;                  /* of noise and state */
};

/* A decode launch of up to `rows.max` requests. */
struct tec_decode_table {
    struct tec_rows rows;
    int *k, *stop; /* steps asked for; set when every row is done */
    /* Of each row, [rows.max]: as in struct tec_next_token_args (kernels/args.h): the token it goes
     * on with, its first private slot, the tokens before that, those that it may still make,
     * whether it has ended, how many this launch made, the id that ends it, room for the largest
     * logit's id. */
    int *token, *tail, *prefix, *left, *done, *produced, *eos, *best;
    int *tokens; /* [rows.max, max_tokens] what this launch produced */
    int max_tokens;
    int *waiting; /* [rows.max] tokens of a prompt of their own that are still to be read */
    int *forced;  /* [rows.max, max_forced] these, at the end of each row; NULL without */
    int max_forced;
    struct tec_moves moves, shifts; /* as a prefix table's */
    unsigned *used; /* [rows.max, words] bit set of the tokens in the text so far; NULL without */
    int words;
    float *temperature, *top_p; /* [rows.max]; NULL where nothing is ever drawn */
    int *top_k;
    unsigned *seed; /* [rows.max, 2] */
    int *place;     /* [rows.max] in the plan's trie, -1 = anything goes; NULL without */
};

/* Rows of a tree whose logits are there at a time, and how many times. */
enum { TEC_SCORE_ROWS = 64, TEC_SCORE_CHUNKS = 128 };

/* The rows of a tree of tokens behind a prefix, and what may follow each. */
struct tec_score_table {
    struct tec_rows rows; /* a sequence a chain of the tree */
    int *chunk;           /* [n_chunks] live rows of each TEC_SCORE_ROWS */
    int n_chunks;
    int *token, *first; /* [rows.max], [rows.max + 1] */
    int *id;            /* [max_entries] */
    float *likely;      /* [max_entries] out: log-probabilities */
    int max_entries;
};

/* Texts of one forward, one after the other, each a sequence of its own; a row's slot is the row.
 */
struct tec_encode_table {
    struct tec_rows rows;  /* spans[i]: the rows of text i */
    int *ids;              /* [rows.max] */
    int *place;            /* [rows.max] of the table of positions */
    struct tec_span *pool; /* [texts] the rows whose mean is the text's vector */
    int *n_texts;
    int *one; /* a constant */
};

/* A frame table: the host staging copy and its device twin. */
struct tec_table_block {
    unsigned char *host, *device;
    size_t size;
    unsigned char *pixels; /* device memory for pictures; NULL = none */
    size_t pixels_size;
};

struct tec_prefix_limits {
    const struct tec_model *model;
    int max_rows;     /* tokens of the frame's resource */
    int max_text;     /* tokens of the prompt */
    int max_pictures; /* valid cameras */
    int scratch_slot; /* first slot of the suffix's keys, -1 = no action */
    bool fixed;       /* first actions may be given */
    bool guided;      /* an earlier chunk may be */
    int max_keys;     /* keys that there may be projections of; 0 = nobody reads such */
    int more_rows;    /* rows of other sequences, one each, behind the prefix */
    int most;         /* observations; 0 = 1. The four sizes above are of all of them */
    bool gathers;     /* attention reads copies */
    int shifts;       /* most moves behind each attention; 0 = there are none */
    bool knows;       /* rows of pictures may be an earlier prefill's */
};

struct tec_decode_limits {
    int batch;
    int max_tokens; /* of a launch */
    int max_forced; /* tokens of a prompt of its own */
    bool gathers;   /* attention reads copies */
    int shifts;     /* most moves behind each attention; 0 = there are none */
    int words;      /* of the set of tokens that were there before; 0 = none is kept */
    bool draws;     /* tokens may be drawn */
    bool chooses;   /* a request may be held to a list of texts */
};

struct tec_score_limits {
    int rows, entries, chains, spans; /* of the largest tree, each */
    int64_t depths, reached;          /* tokens that its rows, its chains see behind the prefix */
};

struct tec_encode_limits {
    int rows, texts;
};

/* A kind of table: how its arrays are dealt; what never changes of it, on the host's side, NULL =
 * nothing; memory that it has besides its block, NULL = none. */
struct tec_dealer;
struct tec_table_kind {
    void (*deal)(struct tec_dealer *d, void *table, const void *limits);
    void (*fill)(void *host_side, const void *limits);
    enum tec_status (*more)(struct tec_table_block *block, void *host_side, void *device_side,
                            const void *limits, struct tec_device *device, struct tec_error *err);
};

/* Tables are struct tec_NAME_table and limits struct tec_NAME_limits, but for moves: struct
 * tec_moves, and an int. */
extern const struct tec_table_kind tec_prefix_tables, tec_decode_tables, tec_encode_tables,
    tec_score_tables, tec_move_tables;

/* Lay out, take the memory, fill what never changes (in both places). `device_side` and `host_side`
 * are the two views. Device memory is given back with tec_table_finish. */
enum tec_status tec_table_init(struct tec_table_block *block, const struct tec_table_kind *kind,
                               void *host_side, void *device_side, const void *limits,
                               struct tec_device *device, struct tec_arena *arena,
                               struct tec_error *err);

/* The rotation with sections of a model's text; NULL where positions are one number. */
const struct tec_rotation *tec_sections(const struct tec_model *model);

void tec_table_finish(struct tec_table_block *block, struct tec_device *device);

/* Rows of the suffix: the horizon, and one for a state row; queries; 0 for a model with neither. */
int tec_suffix_rows(const struct tec_model *model);

/* Of them the rows that stand in front of the actions'. */
int tec_suffix_front(const struct tec_model *model);

/* Where the action rows of one observation stand among those of all: its first `given` ones from
 * row first_given on, its others from first_other on. Given actions of all observations come first,
 * so that one count says which rows they are (kernels/args.h). */
struct tec_suffix_runs {
    int given, first_given, first_other;
};
struct tec_suffix_runs tec_suffix_runs(const struct tec_prefix_table *table, int horizon, int at);

/* Row r of them. */
static inline int tec_suffix_row(const struct tec_suffix_runs *runs, int r)
{
    return r < runs->given ? runs->first_given + r : runs->first_other + r - runs->given;
}

/* Rows before the pictures: 0 or 1. */
int tec_lead_rows(const struct tec_model *model);

/* Rows of the robot's state, and with them all rows that a head adds to the prefix: in memory they
 * stand before the pictures, after the leading one, as state | zeros | end; their places in the
 * sequence are state before the prompt, the others behind it. A flow's state, where the prefix has
 * it, is the only one of these, and the last of the sequence. */
int tec_state_rows(const struct tec_model *model);
int tec_head_rows(const struct tec_model *model);

#endif
