/* key.c - the secret that clients must show: read from a file, compared in constant time. */
#include "tools/serve/key.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* Open a regular file, of a secret one that only its owner can use. O_NONBLOCK: a FIFO must not
 * block the program. */
static enum tec_status open_regular(int *fd, const char *option, const char *path, bool secret,
                                    struct tec_error *err)
{
    struct stat st;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0 || fstat(*fd, &st) != 0)
        return tec_fail(err, TEC_IO, "%s %s: %s", option, path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return tec_fail(err, TEC_IO, "%s %s: not a regular file", option, path);
    if (secret && st.st_mode & (S_IRWXG | S_IRWXO))
        return tec_fail(err, TEC_UNSUPPORTED,
                        "%s %s: others than its owner may use this file (mode %03o); "
                        "`chmod 600` it",
                        option, path, (unsigned)(st.st_mode & 0777));
    return TEC_OK;
}

enum tec_status tec_key_file(void *data, size_t room, size_t *n, const char *option,
                             const char *path, bool secret, struct tec_error *err)
{
    int fd = -1;
    *n = 0;
    enum tec_status status = open_regular(&fd, option, path, secret, err);
    while (status == TEC_OK && *n < room) {
        ssize_t got = read(fd, (char *)data + *n, room - *n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            status = tec_fail(err, TEC_IO, "%s %s: %s", option, path, strerror(errno));
        if (got <= 0)
            break;
        *n += (size_t)got;
    }
    if (fd >= 0)
        close(fd);
    return status;
}

static bool printable(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return true;
}

enum tec_status tec_key_read(struct tec_key *key, const char *path, struct tec_error *err)
{
    char text[TEC_KEY_MAX + 3];
    size_t n;
    *key = (struct tec_key){.n = 0};
    TEC_TRY(tec_key_file(text, sizeof text, &n, "--key", path, true, err));
    const char *end = memchr(text, '\n', n);
    n = end ? (size_t)(end - text) : n;
    n -= n > 0 && text[n - 1] == '\r';
    if (n < TEC_KEY_MIN || n > TEC_KEY_MAX || !printable(text, n))
        return tec_fail(err, TEC_MALFORMED,
                        "--key %s: its first line must be a key of %d to %d printable ASCII "
                        "characters without spaces",
                        path, TEC_KEY_MIN, TEC_KEY_MAX);
    memcpy(key->text, text, n);
    key->n = n;
    return TEC_OK;
}

bool tec_key_fits(const struct tec_key *key, const char *header, size_t n)
{
    static const char *const schemes[] = {"Api-Key ", "Bearer "};
    for (int i = 0; i < 2; i++) {
        size_t skip = strlen(schemes[i]);
        if (n < skip || strncasecmp(header, schemes[i], skip) != 0)
            continue;
        const char *shown = header + skip;
        size_t n_shown = n - skip;
        /* Every byte that was shown is compared with some byte of the key, also where the lengths
         * differ: neither the place of the first wrong byte nor the key's length shows in time. */
        unsigned wrong = n_shown != key->n;
        for (size_t k = 0; k < n_shown; k++)
            wrong |= (unsigned char)shown[k] ^ (unsigned char)key->text[k % TEC_KEY_MAX];
        return wrong == 0;
    }
    return false;
}
