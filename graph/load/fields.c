/* fields.c - the tables made from fields.def, and the words of its enumerations. */
#include "graph/load/fields.h"
#include "graph/load/pipeline.h"
#include "graph/transform/guide.h"

#include <string.h>

static const struct tec_word dtype_words[] = {{"u8", TEC_DECL_U8},
                                              {"i32", TEC_DECL_I32},
                                              {"i64", TEC_DECL_I64},
                                              {"f32", TEC_DECL_F32},
                                              {"f64", TEC_DECL_F64},
                                              {"bf16", TEC_DECL_BF16},
                                              {NULL, 0}};
static const struct tec_word model_dtype_words[] = {
    {"bf16", TEC_DECL_BF16}, {"f32", TEC_DECL_F32}, {NULL, 0}};
static const struct tec_word quantize_words[] = {{"none", TEC_QUANTIZE_NONE},
                                                 {"int8", TEC_QUANTIZE_INT8},
                                                 {"int4", TEC_QUANTIZE_INT4},
                                                 {NULL, 0}};
static const struct tec_word head_words[] = {
    {"none", TEC_QUANTIZE_NONE}, {"int8", TEC_QUANTIZE_INT8}, {NULL, 0}};
static const struct tec_word round_words[] = {
    {"none", TEC_ROUND_NONE}, {"bf16x2", TEC_ROUND_BF16X2}, {"mixed", TEC_ROUND_MIXED},
    {"bf16", TEC_ROUND_BF16}, {"int8", TEC_ROUND_INT8},     {NULL, 0}};
static const struct tec_word image_dtype_words[] = {
    {"u8", TEC_DECL_U8}, {"f32", TEC_DECL_F32}, {NULL, 0}};
static const struct tec_word tensor_dtype_words[] = {{"f32", TEC_DECL_F32}, {"f64", TEC_DECL_F64},
                                                     {"i32", TEC_DECL_I32}, {"i64", TEC_DECL_I64},
                                                     {"u8", TEC_DECL_U8},   {NULL, 0}};
static const struct tec_word clock_words[] = {{"internal", TEC_CLOCK_INTERNAL},
                                              {"external", TEC_CLOCK_EXTERNAL},
                                              {"on_request", TEC_CLOCK_ON_REQUEST},
                                              {NULL, 0}};
static const struct tec_word overrun_words[] = {{"skip_next", TEC_OVERRUN_SKIP_NEXT}, {NULL, 0}};
static const struct tec_word shift_words[] = {
    {"rotate", TEC_SHIFT_ROTATE}, {"device_copy", TEC_SHIFT_DEVICE_COPY}, {NULL, 0}};
static const struct tec_word pack_words[] = {
    {"packed", TEC_PACK_PACKED}, {"gather", TEC_PACK_GATHER}, {NULL, 0}};
static const struct tec_word change_words[] = {
    {"flush", TEC_CHANGE_FLUSH}, {"keep", TEC_CHANGE_KEEP}, {NULL, 0}};
static const struct tec_word overlap_words[] = {
#define OVERLAP(name, text, what) {text, TEC_OVERLAP_##name},
#include "graph/memory/overlaps.def"
#undef OVERLAP
    {NULL, 0}};
static const struct tec_word select_words[] = {
#define SELECTION(name, text, what) {text, TEC_SELECTION_##name},
#include "graph/memory/selections.def"
#undef SELECTION
    {NULL, 0}};
static const struct tec_word guide_schedule_words[] = {
#define GUIDE(name, text, what) {text, TEC_GUIDE_##name},
#include "graph/transform/guides.def"
#undef GUIDE
    {NULL, 0}};
static const struct tec_word scoring_words[] = {
#define SCORING(name, text, what) {text, TEC_SCORING_##name},
#include "graph/memory/scorings.def"
#undef SCORING
    {NULL, 0}};
static const struct tec_word positions_words[] = {
    {"relocate", TEC_POSITIONS_RELOCATE}, {"local0", TEC_POSITIONS_LOCAL0}, {NULL, 0}};
static const struct tec_word order_words[] = {
    {"best_first", TEC_ORDER_BEST_FIRST}, {"as_put", TEC_ORDER_AS_PUT}, {NULL, 0}};
static const struct tec_word hard_miss_words[] = {{"hold", TEC_MISS_HOLD},
                                                  {"hold_last", TEC_MISS_HOLD},
                                                  {"decay", TEC_MISS_DECAY},
                                                  {"last_chunk", TEC_MISS_LAST_CHUNK},
                                                  {"zeros", TEC_MISS_ZEROS},
                                                  {"stop", TEC_MISS_STOP},
                                                  {NULL, 0}};
static const struct tec_word soft_miss_words[] = {
    {"shed", TEC_MISS_SHED}, {"continue", TEC_MISS_CONTINUE}, {NULL, 0}};
static const struct tec_word priority_words[] = {{"low", TEC_PRIORITY_LOW},
                                                 {"normal", TEC_PRIORITY_NORMAL},
                                                 {"high", TEC_PRIORITY_HIGH},
                                                 {NULL, 0}};
static const struct tec_word capture_miss_words[] = {{"error", 0}, {NULL, 0}};

static const struct tec_word model_words[] = {{"model", TEC_CON_model}, {NULL, 0}};
static const struct tec_word frame_words[] = {{"frame", TEC_CON_frame}, {NULL, 0}};
static const struct tec_word input_words[] = {{"image", TEC_CON_image},
                                              {"tensor", TEC_CON_tensor},
                                              {"text", TEC_CON_text},
                                              {"segments", TEC_CON_segments},
                                              {NULL, 0}};
static const struct tec_word resource_words[] = {
    {"kv.frame", TEC_CON_kv_frame}, {"kv.requests", TEC_CON_kv_requests},
    {"kv.ring", TEC_CON_kv_ring},   {"kv.segments", TEC_CON_kv_segments},
    {"buffer", TEC_CON_buffer},     {NULL, 0}};
static const struct tec_word node_words[] = {{"prefill", TEC_CON_prefill},
                                             {"action", TEC_CON_action},
                                             {"decode", TEC_CON_decode},
                                             {"score", TEC_CON_score},
                                             {"memory_load", TEC_CON_memory_load},
                                             {"remember", TEC_CON_remember},
                                             {NULL, 0}};
static const struct tec_word partition_words[] = {{"sm", TEC_CON_sm}, {NULL, 0}};
static const struct tec_word capture_words[] = {{"capture", TEC_CON_capture}, {NULL, 0}};
static const struct tec_word memory_words[] = {{"memory", TEC_CON_memory}, {NULL, 0}};
static const struct tec_word use_words[] = {{"use", TEC_CON_use}, {NULL, 0}};
static const struct tec_word guard_words[] = {{"guard", TEC_CON_guard}, {NULL, 0}};
static const struct tec_word tiers_words[] = {{"tiers", TEC_CON_tiers}, {NULL, 0}};
static const struct tec_word recompute_words[] = {{"recompute", TEC_CON_recompute}, {NULL, 0}};
static const struct tec_word guide_words[] = {{"guide", TEC_CON_guide}, {NULL, 0}};
static const struct tec_word draft_words[] = {{"draft", TEC_CON_draft}, {NULL, 0}};
static const struct tec_word deadline_words[] = {
    {"hard", TEC_CON_hard}, {"soft", TEC_CON_soft}, {NULL, 0}};

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
        if (words->value == value)
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
