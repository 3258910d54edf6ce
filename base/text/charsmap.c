/* charsmap.c - looks up rules in the precompiled map of SentencePiece: a double-array trie and its
 * texts.
 *
 * The map comes from a file that is not trusted: each node is checked to lie inside the trie, and a
 * lookup ends after LONGEST_RULE bytes even if the trie holds a cycle. */
#include "base/text/charsmap.h"

#include "base/text/utf8.h"

#include <string.h>

static uint32_t read_u32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

enum tec_status tec_charsmap_open(struct tec_charsmap *map, const void *blob, size_t size,
                                  struct tec_error *err)
{
    const unsigned char *bytes = blob;
    *map = (struct tec_charsmap){0};
    if (size == 0)
        return TEC_OK;
    if (size < 4 || read_u32(bytes) >= size - 4 || read_u32(bytes) % 4 || read_u32(bytes) == 0)
        return tec_fail(err, TEC_MALFORMED, "precompiled_charsmap of %zu bytes is broken: %s", size,
                        size < 4 ? "too short" : "its trie does not fit");
    map->units = bytes + 4;
    map->n_units = read_u32(bytes) / 4;
    map->n_texts = size - 4 - 4 * map->n_units;
    map->texts = (const char *)map->units + 4 * map->n_units;
    if (map->texts[map->n_texts - 1] != '\0' ||
        tec_utf8_check(map->texts, map->n_texts) != map->n_texts)
        return tec_fail(err, TEC_MALFORMED, "precompiled_charsmap: its texts are not UTF-8");
    for (size_t at = 0, end; at < map->n_texts; at = end + 1) {
        end = at + strlen(map->texts + at);
        if (end - at > TEC_CHARSMAP_TEXT)
            return tec_fail(err, TEC_UNSUPPORTED,
                            "precompiled_charsmap: a text has %zu bytes, at most %d", end - at,
                            TEC_CHARSMAP_TEXT);
    }
    return TEC_OK;
}

/* The offset from a unit to its children (darts-clone). A unit has its label in bits 0-7 and 31,
 * bit 8 set if it has a leaf, bit 9 set if its offset is wide, and the offset in bits 10-30. A leaf
 * holds its value in bits 0-30. */
static size_t next_node(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & 0x200) >> 6);
}

#define LONGEST_RULE 128 /* bytes; a broken trie may hold a cycle */

static size_t search(const struct tec_charsmap *map, const char *s, size_t n,
                     struct tec_text_span *text, bool shortest)
{
    size_t found = 0;
    if (map->n_units == 0)
        return 0;
    size_t node = next_node(read_u32(map->units));
    for (size_t i = 0; i < n && i < LONGEST_RULE; i++) {
        unsigned char byte = (unsigned char)s[i];
        node ^= byte;
        if (node >= map->n_units)
            break;
        uint32_t unit = read_u32(map->units + 4 * node);
        if ((unit & 0x800000FFU) != byte)
            break;
        node ^= next_node(unit);
        if (!(unit & 0x100))
            continue;
        size_t value =
            node < map->n_units ? read_u32(map->units + 4 * node) & 0x7FFFFFFF : map->n_texts;
        /* Ignore a rule that points outside the texts or that splits a character of either text. */
        if (i + 1 < n && ((unsigned char)s[i + 1] & 0xC0) == 0x80)
            continue;
        if (value >= map->n_texts || ((unsigned char)map->texts[value] & 0xC0) == 0x80)
            continue;
        found = i + 1;
        *text = (struct tec_text_span){map->texts + value, strlen(map->texts + value)};
        if (shortest)
            break;
    }
    return found;
}

size_t tec_charsmap_longest(const struct tec_charsmap *map, const char *s, size_t n,
                            struct tec_text_span *text)
{
    return search(map, s, n, text, false);
}

size_t tec_charsmap_shortest(const struct tec_charsmap *map, const char *s, size_t n,
                             struct tec_text_span *text)
{
    return search(map, s, n, text, true);
}
