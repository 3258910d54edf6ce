/* fields.c - the tables made from fields.def, and the words of its enumerations. */
#include "graph/load/fields.h"
#include "graph/load/pipeline.h"
#include "graph/transform/guide.h"

#include <string.h>

static const struct tec_word dtype_words[] = {{"u8", TEC_DECL_U8, false},
                                              {"i32", TEC_DECL_I32, false},
                                              {"i64", TEC_DECL_I64, false},
                                              {"f32", TEC_DECL_F32, false},
                                              {"f64", TEC_DECL_F64, false},
                                              {"bf16", TEC_DECL_BF16, false},
                                              {NULL, 0, false}};
static const struct tec_word model_dtype_words[] = {
    {"bf16", TEC_DECL_BF16, false}, {"f32", TEC_DECL_F32, false}, {NULL, 0, false}};
static const struct tec_word quantize_words[] = {{"none", TEC_QUANTIZE_NONE, false},
                                                 {"int8", TEC_QUANTIZE_INT8, false},
                                                 {"int4", TEC_QUANTIZE_INT4, false},
                                                 {NULL, 0, false}};
static const struct tec_word round_words[] = {{"none", TEC_ROUND_NONE, false},
                                              {"bf16x2", TEC_ROUND_BF16X2, false},
                                              {"bf16", TEC_ROUND_BF16, false},
                                              {NULL, 0, false}};
static const struct tec_word image_dtype_words[] = {
    {"u8", TEC_DECL_U8, false}, {"f32", TEC_DECL_F32, false}, {NULL, 0, false}};
static const struct tec_word tensor_dtype_words[] = {
    {"f32", TEC_DECL_F32, false}, {"f64", TEC_DECL_F64, false}, {"i32", TEC_DECL_I32, false},
    {"i64", TEC_DECL_I64, false}, {"u8", TEC_DECL_U8, false},   {NULL, 0, false}};
static const struct tec_word clock_words[] = {{"internal", TEC_CLOCK_INTERNAL, false},
                                              {"external", TEC_CLOCK_EXTERNAL, false},
                                              {"on_request", TEC_CLOCK_ON_REQUEST, false},
                                              {NULL, 0, false}};
static const struct tec_word overrun_words[] = {{"skip_next", TEC_OVERRUN_SKIP_NEXT, false},
                                                {NULL, 0, false}};
static const struct tec_word shift_words[] = {{"rotate", TEC_SHIFT_ROTATE, false},
                                              {"device_copy", TEC_SHIFT_DEVICE_COPY, false},
                                              {NULL, 0, false}};
static const struct tec_word pack_words[] = {
    {"packed", TEC_PACK_PACKED, false}, {"gather", TEC_PACK_GATHER, false}, {NULL, 0, false}};
static const struct tec_word change_words[] = {
    {"flush", TEC_CHANGE_FLUSH, false}, {"keep", TEC_CHANGE_KEEP, false}, {NULL, 0, false}};
static const struct tec_word overlap_words[] = {
#define OVERLAP(name, text, what) {text, TEC_OVERLAP_##name, false},
#include "graph/memory/overlaps.def"
#undef OVERLAP
    {NULL, 0, false}};
static const struct tec_word select_words[] = {
#define SELECTION(name, text, what) {text, TEC_SELECTION_##name, false},
#include "graph/memory/selections.def"
#undef SELECTION
    {NULL, 0, false}};
static const struct tec_word guide_schedule_words[] = {
#define GUIDE(name, text, what) {text, TEC_GUIDE_##name, false},
#include "graph/transform/guides.def"
#undef GUIDE
    {NULL, 0, false}};
static const struct tec_word scoring_words[] = {
#define SCORING(name, text, what) {text, TEC_SCORING_##name, false},
#include "graph/memory/scorings.def"
#undef SCORING
    {NULL, 0, false}};
static const struct tec_word positions_words[] = {{"relocate", TEC_POSITIONS_RELOCATE, false},
                                                  {"local0", TEC_POSITIONS_LOCAL0, false},
                                                  {NULL, 0, false}};
static const struct tec_word order_words[] = {{"best_first", TEC_ORDER_BEST_FIRST, false},
                                              {"as_put", TEC_ORDER_AS_PUT, false},
                                              {NULL, 0, false}};
static const struct tec_word hard_miss_words[] = {{"hold", TEC_MISS_HOLD, false},
                                                  {"hold_last", TEC_MISS_HOLD, true},
                                                  {"decay", TEC_MISS_DECAY, false},
                                                  {"last_chunk", TEC_MISS_LAST_CHUNK, false},
                                                  {"zeros", TEC_MISS_ZEROS, false},
                                                  {"stop", TEC_MISS_STOP, false},
                                                  {NULL, 0, false}};
static const struct tec_word soft_miss_words[] = {
    {"shed", TEC_MISS_SHED, false}, {"continue", TEC_MISS_CONTINUE, false}, {NULL, 0, false}};
static const struct tec_word priority_words[] = {{"low", TEC_PRIORITY_LOW, false},
                                                 {"normal", TEC_PRIORITY_NORMAL, false},
                                                 {"high", TEC_PRIORITY_HIGH, false},
                                                 {NULL, 0, false}};
static const struct tec_word capture_miss_words[] = {{"error", 0, false}, {NULL, 0, false}};

static const struct tec_word model_words[] = {{"model", TEC_CON_model, false}, {NULL, 0, false}};
static const struct tec_word frame_words[] = {{"frame", TEC_CON_frame, false}, {NULL, 0, false}};
static const struct tec_word input_words[] = {{"image", TEC_CON_image, false},
                                              {"tensor", TEC_CON_tensor, false},
                                              {"text", TEC_CON_text, false},
                                              {"segments", TEC_CON_segments, false},
                                              {NULL, 0, false}};
static const struct tec_word resource_words[] = {
    {"kv.frame", TEC_CON_kv_frame, false}, {"kv.requests", TEC_CON_kv_requests, false},
    {"kv.ring", TEC_CON_kv_ring, false},   {"kv.segments", TEC_CON_kv_segments, false},
    {"buffer", TEC_CON_buffer, false},     {NULL, 0, false}};
static const struct tec_word node_words[] = {{"prefill", TEC_CON_prefill, false},
                                             {"action", TEC_CON_action, false},
                                             {"decode", TEC_CON_decode, false},
                                             {"score", TEC_CON_score, false},
                                             {"memory_load", TEC_CON_memory_load, false},
                                             {"remember", TEC_CON_remember, false},
                                             {NULL, 0, false}};
static const struct tec_word partition_words[] = {{"sm", TEC_CON_sm, false}, {NULL, 0, false}};
static const struct tec_word capture_words[] = {{"capture", TEC_CON_capture, false},
                                                {NULL, 0, false}};
static const struct tec_word memory_words[] = {{"memory", TEC_CON_memory, false}, {NULL, 0, false}};
static const struct tec_word use_words[] = {{"use", TEC_CON_use, false}, {NULL, 0, false}};
static const struct tec_word guard_words[] = {{"guard", TEC_CON_guard, false}, {NULL, 0, false}};
static const struct tec_word tiers_words[] = {{"tiers", TEC_CON_tiers, false}, {NULL, 0, false}};
static const struct tec_word recompute_words[] = {{"recompute", TEC_CON_recompute, false},
                                                  {NULL, 0, false}};
static const struct tec_word guide_words[] = {{"guide", TEC_CON_guide, false}, {NULL, 0, false}};
static const struct tec_word draft_words[] = {{"draft", TEC_CON_draft, false}, {NULL, 0, false}};
static const struct tec_word deadline_words[] = {
    {"hard", TEC_CON_hard, false}, {"soft", TEC_CON_soft, false}, {NULL, 0, false}};

const struct tec_constructor_info tec_constructors[TEC_CONSTRUCTORS] = {
#define PLAIN(id, word, strct, doc) \
    [TEC_CON_##id] = {word, doc, NULL, sizeof(struct strct), offsetof(struct strct, where), -1, 0},
#define KIND(id, word, strct, value, doc)            \
    [TEC_CON_##id] = {word,                          \
                      doc,                           \
                      NULL,                          \
                      sizeof(struct strct),          \
                      offsetof(struct strct, where), \
                      value,                         \
                      offsetof(struct strct, kind)},
#define CALL(id, word, usage, doc) [TEC_CON_##id] = {word, doc, usage, 0, 0, -1, 0},
#define FIELD(...)
#define THINGS(...)
#include "graph/load/fields.def"
#undef PLAIN
#undef KIND
#undef CALL
#undef FIELD
#undef THINGS
};

#define REQUIRED NULL
#define OPTIONAL ""
const struct tec_field tec_fields[] = {
#define PLAIN(...)
#define KIND(...)
#define CALL(...)
#define FIELD(owner, strct, member, name, type, min, max, standard, words, doc) \
    {TEC_CON_##owner,                                                           \
     TEC_FIELD_##type,                                                          \
     name,                                                                      \
     offsetof(struct strct, member),                                            \
     0,                                                                         \
     min,                                                                       \
     max,                                                                       \
     standard,                                                                  \
     words,                                                                     \
     doc},
#define THINGS(owner, strct, member, count, name, max, words, doc) \
    {TEC_CON_##owner,                                              \
     TEC_FIELD_THINGS,                                             \
     name,                                                         \
     offsetof(struct strct, member),                               \
     offsetof(struct strct, count),                                \
     0,                                                            \
     max,                                                          \
     OPTIONAL,                                                     \
     words,                                                        \
     doc},
#include "graph/load/fields.def"
#undef PLAIN
#undef KIND
#undef CALL
#undef FIELD
#undef THINGS
};
const int tec_n_fields = (int)(sizeof tec_fields / sizeof tec_fields[0]);

const struct tec_field *tec_load_fields_of(enum tec_constructor owner)
{
    for (int i = 0; i < tec_n_fields; i++)
        if (tec_fields[i].owner == owner)
            return &tec_fields[i];
    return NULL;
}

bool tec_field_more(const struct tec_field *field, enum tec_constructor owner)
{
    return field && field < tec_fields + tec_n_fields && field->owner == owner;
}

const struct tec_field *tec_field_find(enum tec_constructor owner, const char *name)
{
    for (const struct tec_field *f = tec_load_fields_of(owner); tec_field_more(f, owner); f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

enum tec_constructor tec_constructor_find(const char *word)
{
    for (int i = TEC_CON_NONE + 1; i < TEC_CONSTRUCTORS; i++)
        if (strcmp(tec_constructors[i].word, word) == 0)
            return (enum tec_constructor)i;
    return TEC_CON_NONE;
}

const char *tec_load_word_of(const struct tec_word *words, int value)
{
    for (; words->word; words++)
        if (words->value == value && !words->alias)
            return words->word;
    return NULL;
}

int tec_load_word_value(const struct tec_word *words, const char *word)
{
    for (; words->word; words++)
        if (strcmp(words->word, word) == 0)
            return words->value;
    return -1;
}

const char *tec_decl_dtype_word(int dtype)
{
    const char *word = tec_load_word_of(dtype_words, dtype);
    return word ? word : "?";
}

/* Words and enumeration values stand in the same order in these tables. */
const char *tec_decl_node_word(enum tec_decl_node_kind kind)
{
    return node_words[kind].word;
}

const char *tec_resource_word(enum tec_resource_kind kind)
{
    return resource_words[kind].word;
}

const char *tec_load_input_word(enum tec_input_kind kind)
{
    return input_words[kind].word;
}
