/* socket.c - the Unix socket of a running robot: created for its user alone, never in place of
 * another's file, and removed at the end. */
#include "tools/control/socket.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static enum tec_status address_of(struct sockaddr_un *address, const char *path,
                                  struct tec_error *err)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof address->sun_path)
        return tec_fail(err, TEC_INVALID, "--control: the path of a socket has 1 to %zu bytes",
                        sizeof address->sun_path - 1);
    memcpy(address->sun_path, path, n);
    return TEC_OK;
}

static int connect_to(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address) == 0)
        return fd;
    int why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
    return -1;
}

/* Remove the socket that a killed process left behind; anything else at this path stays. */
static enum tec_status make_room(const struct sockaddr_un *address, struct tec_error *err)
{
    const char *path = address->sun_path;
    struct stat there;
    if (lstat(path, &there) != 0)
        return errno == ENOENT ? TEC_OK
                               : tec_fail(err, TEC_IO, "--control %s: %s", path, strerror(errno));
    if (!S_ISSOCK(there.st_mode))
        return tec_fail(err, TEC_INVALID,
                        "--control %s: there is a file that is no socket; choose another path",
                        path);
    if (there.st_uid != geteuid())
        return tec_fail(err, TEC_INVALID,
                        "--control %s: the socket there is another user's; choose another path",
                        path);
    int fd = connect_to(address);
    if (fd >= 0 || errno != ECONNREFUSED) {
        if (fd >= 0)
            close(fd);
        return tec_fail(err, TEC_INVALID,
                        "--control %s: a running process listens there; choose another path", path);
    }
    return unlink(path) == 0 || errno == ENOENT
               ? TEC_OK
               : tec_fail(err, TEC_IO, "--control %s: %s", path, strerror(errno));
}

/* Nobody can connect before listen(), and by then the mode of the socket is set. */
static bool open_at(struct tec_control_socket *s, const struct sockaddr_un *address)
{
    enum { WAITING = 8 };
    struct stat made;
    s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->fd < 0 || fchmod(s->fd, S_IRUSR | S_IWUSR) != 0 ||
        bind(s->fd, (const struct sockaddr *)address, sizeof *address) != 0)
        return false;
    if (lstat(address->sun_path, &made) != 0)
        return false;
    s->device = made.st_dev;
    s->inode = made.st_ino;
    return chmod(address->sun_path, S_IRUSR | S_IWUSR) == 0 && listen(s->fd, WAITING) == 0;
}

enum tec_status tec_control_bind(struct tec_control_socket *s, const char *path,
                                 struct tec_error *err)
{
    struct sockaddr_un address;
    *s = (struct tec_control_socket){.fd = -1, .path = path};
    TEC_TRY(address_of(&address, path, err));
    TEC_TRY(make_room(&address, err));
    if (open_at(s, &address))
        return TEC_OK;
    int why = errno;
    tec_control_unbind(s);
    return tec_fail(err, TEC_IO, "--control %s: %s", path, strerror(why));
}

void tec_control_unbind(struct tec_control_socket *s)
{
    struct stat there;
    if (s->inode && lstat(s->path, &there) == 0 && there.st_dev == s->device &&
        there.st_ino == s->inode)
        unlink(s->path);
    if (s->fd >= 0)
        close(s->fd);
    *s = (struct tec_control_socket){.fd = -1};
}

enum tec_status tec_control_connect(int *fd, const char *path, struct tec_error *err)
{
    struct sockaddr_un address;
    *fd = -1;
    TEC_TRY(address_of(&address, path, err));
    *fd = connect_to(&address);
    if (*fd >= 0)
        return TEC_OK;
    int why = errno;
    return tec_fail(err, TEC_NOT_FOUND, "--control %s: %s%s", path, strerror(why),
                    why == ECONNREFUSED || why == ENOENT
                        ? "; is a robot running with --control and this path?"
                        : "");
}
