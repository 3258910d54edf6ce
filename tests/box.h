/* box.h - a temporary folder of a test's own, filled with texts and links to golden files. */
#ifndef TEC_TESTS_BOX_H
#define TEC_TESTS_BOX_H

#include "tests/tap.h"

#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Made by box_make, removed with all in it by box_remove. */
struct box {
    char dir[64], path[400];
};

/* An empty folder, which its maker removes. */
static inline void box_folder(char *dir, size_t size)
{
    snprintf(dir, size, "%s/tec-box-XXXXXX", P_tmpdir);
    REQUIRE(mkdtemp(dir));
}

static inline void box_make(struct box *b)
{
    box_folder(b->dir, sizeof b->dir);
}

static inline int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static inline void box_remove(struct box *b)
{
    CHECK(nftw(b->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

/* b->path of a name, with the folders above it made and the old file removed. */
static inline void box_path(struct box *b, const char *name)
{
    snprintf(b->path, sizeof b->path, "%s/%s", b->dir, name);
    for (char *slash = b->path + strlen(b->dir) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(b->path, 0777);
        *slash = '/';
    }
    unlink(b->path);
}

static inline void box_put(struct box *b, const char *name, const char *text)
{
    box_path(b, name);
    FILE *f = fopen(b->path, "wb");
    REQUIRE(f);
    fputs(text, f);
    CHECK(fclose(f) == 0);
}

static inline void box_link(struct box *b, const char *name, const char *golden)
{
    char *full = realpath(golden, NULL);
    box_path(b, name);
    REQUIRE(full);
    CHECK(symlink(full, b->path) == 0);
    free(full);
}

#endif
