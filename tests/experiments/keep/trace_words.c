/* trace_words.c - the words of the trace, their pieces, and vectors of texts. */
#include "tests/experiments/keep/trace_words.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { WORDS = 128 }; /* of a text that count */

const char *const tec_trace_classes[TEC_TRACE_CLASSES] = {"furniture", "appliance", "tool",
                                                          "food",      "tableware", "example"};

const struct tec_trace_noun tec_trace_nouns[TEC_TRACE_NOUNS] = {
    {"CounterTop", TEC_TRACE_FURNITURE},
    {"DiningTable", TEC_TRACE_FURNITURE},
    {"Shelf", TEC_TRACE_FURNITURE},
    {"Cabinet", TEC_TRACE_FURNITURE},
    {"Drawer", TEC_TRACE_FURNITURE},
    {"Sofa", TEC_TRACE_FURNITURE},
    {"Bed", TEC_TRACE_FURNITURE},
    {"Desk", TEC_TRACE_FURNITURE},
    {"Fridge", TEC_TRACE_APPLIANCE},
    {"Microwave", TEC_TRACE_APPLIANCE},
    {"Stove", TEC_TRACE_APPLIANCE},
    {"CoffeeMachine", TEC_TRACE_APPLIANCE},
    {"Toaster", TEC_TRACE_APPLIANCE},
    {"Sink", TEC_TRACE_APPLIANCE},
    {"Faucet", TEC_TRACE_APPLIANCE},
    {"DeskLamp", TEC_TRACE_APPLIANCE},
    {"Book", TEC_TRACE_TOOL},
    {"CellPhone", TEC_TRACE_TOOL},
    {"KeyChain", TEC_TRACE_TOOL},
    {"RemoteControl", TEC_TRACE_TOOL},
    {"Pencil", TEC_TRACE_TOOL},
    {"Newspaper", TEC_TRACE_TOOL},
    {"Candle", TEC_TRACE_TOOL},
    {"Soap", TEC_TRACE_TOOL},
    {"Apple", TEC_TRACE_FOOD},
    {"Tomato", TEC_TRACE_FOOD},
    {"Potato", TEC_TRACE_FOOD},
    {"Bread", TEC_TRACE_FOOD},
    {"Lettuce", TEC_TRACE_FOOD},
    {"Egg", TEC_TRACE_FOOD},
    {"Onion", TEC_TRACE_FOOD},
    {"Carrot", TEC_TRACE_FOOD},
    {"Cup", TEC_TRACE_TABLEWARE},
    {"Mug", TEC_TRACE_TABLEWARE},
    {"Plate", TEC_TRACE_TABLEWARE},
    {"Bowl", TEC_TRACE_TABLEWARE},
    {"Knife", TEC_TRACE_TABLEWARE},
    {"Fork", TEC_TRACE_TABLEWARE},
    {"Spoon", TEC_TRACE_TABLEWARE},
    {"Pan", TEC_TRACE_TABLEWARE},
};

const char *const tec_trace_states[TEC_TRACE_STATES] = {
    "none", "clean", "dirty", "heated", "sliced", "opened", "closed", "on", "off", "full"};

const char *const tec_trace_places[TEC_TRACE_PLACES] = {"in the fridge",
                                                        "in the sink",
                                                        "on the dining table",
                                                        "on the counter next to the sink",
                                                        "on the counter next to the stove",
                                                        "in the upper cabinet",
                                                        "in the lower drawer",
                                                        "on the middle shelf",
                                                        "on the sofa in the living room",
                                                        "on the bed",
                                                        "on the desk by the window",
                                                        "in the microwave",
                                                        "on the stove",
                                                        "in the left corner of the kitchen",
                                                        "on the floor near the door",
                                                        "in the hand of the robot",
                                                        "on the table in the hall",
                                                        "in the box under the desk",
                                                        "at the wall of the kitchen",
                                                        "on the tray beside the toaster"};

const char *const tec_trace_goals[TEC_TRACE_GOALS] = {"Put a",   "Put a clean", "Put a heated",
                                                      "Bring a", "Put a cold",  "Show me a"};

uint64_t tec_trace_hash(const char *bytes, int n)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (int i = 0; i < n; i++)
        h = (h ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
    return tec_trace_random(&h);
}

uint64_t tec_trace_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static bool is_letter(char c)
{
    return isalpha((unsigned char)c) != 0;
}

/* Letters up to where a new word begins: "CounterTop" is two pieces. */
static int letters(const char *text)
{
    int n = 1;
    while (is_letter(text[n]) && !isupper((unsigned char)text[n]))
        n++;
    return n;
}

/* The piece that begins here: a word with the blank before it, a digit, a blank, signs with the
 * blank before and the line's end behind them. */
static int piece(const char *text)
{
    int n = text[0] == ' ' && text[1] && text[1] != ' ' && !isdigit((unsigned char)text[1]);
    if (is_letter(text[n]))
        return n + letters(text + n);
    if (isspace((unsigned char)text[n]) || isdigit((unsigned char)text[n]))
        return n + 1;
    while (text[n] && !isalnum((unsigned char)text[n]) && !isspace((unsigned char)text[n]))
        n++;
    while (text[n] == '\n')
        n++;
    return n;
}

int tec_trace_tokens(const char *text, int vocab, int *ids, int room)
{
    int n = 0;
    while (*text) {
        int length = piece(text);
        if (n < room)
            ids[n] = (int)(tec_trace_hash(text, length) % (uint64_t)vocab);
        n++;
        text += length;
    }
    return n;
}

/* --- vectors --------------------------------------------------------------------------------- */

static void add(float v[TEC_TRACE_DIM], const char *name, int n, float weight)
{
    uint64_t state = tec_trace_hash(name, n);
    for (int i = 0; i < TEC_TRACE_DIM; i++)
        v[i] += weight * ((float)(tec_trace_random(&state) % 255) - 127.0F) / 64.0F;
}

/* Words that are in every text say nothing. */
static bool common(const char *word, int n)
{
    static const char *const list[] = {"object", "state", "position", "the", "a",   "in",
                                       "on",     "to",    "none",     "of",  "next"};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if ((int)strlen(list[i]) == n && strncmp(list[i], word, (size_t)n) == 0)
            return true;
    return false;
}

static void add_word(float v[TEC_TRACE_DIM], const char *word, int n)
{
    if (common(word, n))
        return;
    add(v, word, n, 1.0F);
    for (int i = 0; i < TEC_TRACE_NOUNS; i++) {
        const struct tec_trace_noun *noun = &tec_trace_nouns[i];
        const char *kind = tec_trace_classes[noun->kind];
        if ((int)strlen(noun->word) != n || strncmp(noun->word, word, (size_t)n) != 0)
            continue;
        add(v, word, n, 2.0F); /* what a text is about counts more than where it is */
        add(v, kind, (int)strlen(kind), 3.0F);
    }
    if (n == 5 && strncmp(word, "Robot", 5) == 0)
        add(v, "example", 7, 12.0F);
}

void tec_trace_embed(const char *text, float v[TEC_TRACE_DIM])
{
    uint64_t seen[WORDS];
    int n_seen = 0;
    memset(v, 0, TEC_TRACE_DIM * sizeof *v);
    while (*text) {
        int n = 0, k = 0;
        while (is_letter(text[n]))
            n++;
        uint64_t hash = tec_trace_hash(text, n);
        while (k < n_seen && seen[k] != hash)
            k++;
        if (n && k == n_seen && n_seen < WORDS) {
            seen[n_seen++] = hash;
            add_word(v, text, n);
        }
        text += n ? n : 1;
    }
}
