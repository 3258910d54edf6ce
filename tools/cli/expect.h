/* expect.h - a path that holds something else than was asked for is named as what it is. */
#ifndef TEC_TOOLS_CLI_EXPECT_H
#define TEC_TOOLS_CLI_EXPECT_H

#include "base/error.h"
#include "base/store/kind.h"
#include "base/text/tokenizer.h"

/* Fails: "x.lua: this is a pipeline file, not a tokenizer"; TEC_NOT_FOUND where there is nothing,
 * else TEC_MALFORMED. */
enum tec_status tec_expect(const char *path, const char *wanted, struct tec_error *err);

/* TEC_OK when the path may be a pipeline file (Lua or JSON), else as tec_expect. */
enum tec_status tec_expect_pipeline(const char *path, struct tec_error *err);

/* Open a tokenizer: a file, a folder with one, or a checkpoint that brings one. */
enum tec_status tec_expect_tokenizer(struct tec_tokenizer **out, const char *path,
                                     struct tec_heap *heap, struct tec_error *err);

#endif
