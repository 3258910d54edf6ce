/* checkpoint.h - a model's directory: its layout, configuration, tensors, tokenizer, statistics. */
#ifndef TEC_BASE_STORE_CHECKPOINT_H
#define TEC_BASE_STORE_CHECKPOINT_H

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/store/norm.h"
#include "base/store/processor.h"
#include "base/store/safetensors.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum tec_layout {
    TEC_LAYOUT_OPENPI,  /* config.json with action_dim; assets/<asset id>/norm_stats.json */
    TEC_LAYOUT_LEROBOT, /* config.json with "type"; policy_preprocessor.json; pretrained_model/ */
    TEC_LAYOUT_HF,      /* config.json with model_type or architectures */
    TEC_LAYOUT_FILE     /* one .safetensors file, or a directory without config.json */
};

struct tec_adapter; /* base/store/adapter.h */

/* What to open, and where else to look. */
struct tec_checkpoint_source {
    const char *path;
    const char *adapter; /* folder of a LoRA adapter to merge into the tensors; NULL: none, or
                          * `path` is that of an adapter itself */
    const char *hub;     /* cache folder of Hugging Face's hub (base/store/hub.h), or NULL */
    const char *robot;   /* tag of the robot to choose (tec_checkpoint_choose); NULL: all stay */
    bool bare; /* files of tensors may be missing or damaged, of statistics missing, and the base of
                * an adapter: for weights that are made up */
};

/* Owned by the caller of open until close; read-only and shareable between threads meanwhile. */
struct tec_checkpoint {
    enum tec_layout layout;
    const char *root; /* where config.json lies (LeRobot: .../pretrained_model) */
    const char *base; /* where the tensors lie: `root`, but for an adapter with a config.json */
    const char *path; /* as given to open */
    const char *hub;  /* as given to open, copied; NULL */
    struct tec_adapter *adapter; /* NULL: none */
    json_t *config;              /* object; NULL for TEC_LAYOUT_FILE */
    struct tec_tensors *tensors; /* NULL: none, of one that was opened bare */
    bool bare;                   /* as given to open */
    const char *prefix;          /* "model." where LeRobot's wrapper put it before names, else "" */
    const char *tokenizer; /* file: tokenizer.model or tokenizer.json; NULL when there is none */
    const char *tokenizer_name; /* LeRobot: as the preprocessor's step names it, often another
                                 * model's name, "owner/model"; of `processor` its model_name; NULL:
                                 * nobody names it */
    const char *const *assets;  /* asset ids with statistics, sorted: "droid", "a/b"; of an HF
                                 * checkpoint the keys of `statistics` */
    size_t n_assets;
    json_t *preprocessor;  /* LeRobot's policy_preprocessor.json, policy_postprocessor.json; */
    json_t *postprocessor; /* NULL when absent */
    json_t *tokenization;  /* tokenizer_config.json beside the tokenizer; NULL when absent */
    json_t *generation;    /* HF: generation_config.json; NULL when absent */
    json_t *pictures;      /* HF: preprocessor_config.json; NULL when absent */
    json_t *statistics;    /* HF: {dataset: {action, proprio?}}, from dataset_statistics.json or,
                            * where that is absent, norm_stats of config.json; NULL: neither */
    /* HF, of robots; NULL where a file is absent. By tag: statistics and features, as
     * experiment_cfg/metadata.json has them, or the modalities of `processor`. */
    json_t *robots;
    /* processor_config.json, where its processor_kwargs have modality_configs; and beside it, by
     * tag, statistics.json and embodiment_id.json. */
    json_t *processor, *robot_statistics, *robot_numbers;
    const char *statistics_in; /* where they lie, for messages: "<root>/config.json: norm_stats" */
    char hash[TEC_HASH_TEXT];  /* tec_tensors_hash, so no data; with an adapter, of both */
    struct tec_heap *heap;     /* borrowed */
    struct tec_arena arena;
};

/* Of the robots that the checkpoint knows leave the one with this tag. TEC_NOT_FOUND lists the
 * tags. Nothing for a checkpoint that lists none. Only before others see it. */
enum tec_status tec_checkpoint_choose(struct tec_checkpoint *c, const char *tag,
                                      struct tec_error *err);

/* "openpi", "lerobot", "hf", "file". */
const char *tec_layout_name(enum tec_layout layout);

/* Open the checkpoint at `path`: a directory of one of the layouts (for LeRobot the one that holds
 * pretrained_model/ or that directory itself), or one .safetensors file. Everything is validated;
 * no tensor data is read. A path that holds something else is named as what it is: "x.lua: this is
 * a pipeline file; a checkpoint is a directory with model.safetensors". */
enum tec_status tec_checkpoint_open(struct tec_checkpoint **out, const char *path,
                                    struct tec_heap *heap, struct tec_error *err);

/* The same with an adapter (tec_adapter_open), which may also be what `path` is: a folder with
 * adapter_config.json and no model. Its base is then what base_model_name_or_path names: a folder,
 * one beside the adapter's, or a model of the hub's cache. Where the adapter's folder has a
 * config.json of its own, as LeRobot saves it, configuration, processors and tokenizer are those of
 * that folder, and the tensors the base's. Folders that the checkpoint lacks files of are looked
 * for in `hub`, too. */
enum tec_status tec_checkpoint_open_source(struct tec_checkpoint **out,
                                           const struct tec_checkpoint_source *source,
                                           struct tec_heap *heap, struct tec_error *err);
void tec_checkpoint_close(struct tec_checkpoint *c); /* NULL is allowed */

/* What is in the tensors, joined ones too, and in the adapter, as 32 hexadecimal digits: weights
 * that were trained on have another one (what is looked at: tec_tensors_content). Reads from the
 * files. TEC_IO, TEC_NO_MEMORY. */
enum tec_status tec_checkpoint_content(const struct tec_checkpoint *checkpoint,
                                       char text[TEC_HASH_TEXT], struct tec_error *err);

/* A file that may hold a part of the model beside its own: where folder `dir` has `file`, a plain
 * name "PART.safetensors", its tensors become "PART.<name>". *joined says so: false where there is
 * none, or it was joined before. TEC_MALFORMED for other names; else as tec_tensors_join, and like
 * it only before others see the checkpoint. */
enum tec_status tec_checkpoint_join(struct tec_checkpoint *c, const char *dir, const char *file,
                                    bool *joined, struct tec_error *err);

/* A file of a model that the checkpoint's configuration names, "maker/model" or a folder: from the
 * first folder that has it, of NAME and its last word, below the checkpoint's own or beside it,
 * then of its base, then in the hub's cache. In the checkpoint's arena; NULL when there is none. */
enum tec_status tec_checkpoint_beside(struct tec_checkpoint *c, const char *name, const char *file,
                                      const char **path, struct tec_error *err);

/* The same file as JSON; TEC_NOT_FOUND says where it was looked for. */
enum tec_status tec_checkpoint_beside_json(struct tec_checkpoint *c, const char *name,
                                           const char *file, json_t **out, struct tec_error *err);

/* Whether its files say of which robot it is: its cameras, state and actions. */
bool tec_checkpoint_has_robot(const struct tec_checkpoint *c);

/* The tensor of that name, with or without the checkpoint's prefix, or NULL. */
const struct tec_stored *tec_checkpoint_tensor(const struct tec_checkpoint *c, const char *name);

/* Elements [first, first + n) of a tensor of c->tensors as float, changed by the adapter where
 * there is one. */
enum tec_status tec_checkpoint_read_f32(const struct tec_checkpoint *c,
                                        const struct tec_stored *stored, uint64_t first, float *dst,
                                        size_t n, struct tec_error *err);

/* Statistics of one vector. openpi: assets/<asset>/norm_stats.json, key "state" or "actions"; asset
 * NULL takes the only one there is; `mode` is the caller's, the file does not say. */
enum tec_status tec_checkpoint_norm_openpi(const struct tec_checkpoint *c, struct tec_norm *norm,
                                           const char *asset, const char *key,
                                           enum tec_norm_mode mode, struct tec_arena *arena,
                                           struct tec_error *err);

/* LeRobot: feature "observation.state" (from the preprocessor's normalizer step) or "action" (from
 * the postprocessor's unnormalizer step); the files say the mode. TEC_NOT_FOUND when the checkpoint
 * has no such step. */
enum tec_status tec_checkpoint_norm_lerobot(const struct tec_checkpoint *c, struct tec_norm *norm,
                                            const char *feature, struct tec_arena *arena,
                                            struct tec_error *err);

/* LeRobot: statistics of the steps that are no (un)normalizer and name a state_file, as {step's
 * registry_name: {tensor: [numbers]}}: its float32 tensors of at most 1024 values, which must be
 * finite. *out is owned by the caller; {} where no step has any, NULL after a failure. */
enum tec_status tec_checkpoint_steps(const struct tec_checkpoint *c, json_t **out,
                                     struct tec_arena *arena, struct tec_error *err);

/* HF: statistics of one dataset, vector "action" or "proprio". `key` names the dataset; NULL takes
 * the only one there is. tec_norm_from_dataset says what mode and eps are. TEC_NOT_FOUND when the
 * checkpoint has no statistics, or none of that key (the message lists the keys); TEC_INVALID when
 * a key must be chosen. */
enum tec_status tec_checkpoint_norm_dataset(const struct tec_checkpoint *c, struct tec_norm *norm,
                                            const char *key, const char *vector,
                                            enum tec_norm_mode mode, double eps,
                                            struct tec_arena *arena, struct tec_error *err);

/* HF: what preprocessor_config.json says of pictures. TEC_NOT_FOUND when there is none. */
enum tec_status tec_checkpoint_processor(const struct tec_checkpoint *c, struct tec_processor *out,
                                         struct tec_error *err);

#endif
