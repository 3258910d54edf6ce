/* out_file.c - output files: whole or not at all, what they replace, and what they never replace.
 */
#include "base/out_file.h"
#include "base/file_kind.h"
#include "tests/box.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

static struct tec_error err;

/* Files in a folder, "." and ".." apart. */
static int count_files(const char *dir)
{
    int n = -2;
    DIR *d = opendir(dir);
    REQUIRE(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void expect_text(const char *path, const char *text)
{
    char got[200] = "";
    FILE *f = fopen(path, "rb");
    REQUIRE(f);
    size_t n = fread(got, 1, sizeof got - 1, f);
    got[n] = '\0';
    fclose(f);
    CHECK_STR(got, text);
}

static enum tec_status put(const char *path, const char *text)
{
    struct tec_out_file out = {0};
    TEC_TRY(tec_outfile_file_open(&out, path, &err));
    fputs(text, out.file);
    return tec_outfile_file_keep(&out, &err);
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    REQUIRE(lstat(path, &st) == 0);
    return st.st_mode & 07777;
}

TEST(a_file_is_there_when_it_is_whole)
{
    struct box b;
    struct tec_out_file out = {0};
    box_make(&b);
    box_path(&b, "x");
    REQUIRE(tec_outfile_file_open(&out, b.path, &err) == TEC_OK);
    fputs("one", out.file);
    fflush(out.file);
    CHECK(access(b.path, F_OK) != 0);
    CHECK_INT(tec_outfile_file_keep(&out, &err), ==, TEC_OK);
    expect_text(b.path, "one");
    CHECK_INT(tec_outfile_file_keep(&out, &err), ==, TEC_OK); /* none is open */
    REQUIRE(tec_outfile_file_open(&out, b.path, &err) == TEC_OK);
    fputs("two", out.file);
    tec_outfile_file_drop(&out);
    expect_text(b.path, "one");
    CHECK_INT(count_files(b.dir), ==, 1);
    box_remove(&b);
}

TEST(permissions_are_the_old_files_or_those_of_a_new_one)
{
    struct box b;
    box_make(&b);
    box_path(&b, "x");
    mode_t mask = umask(027);
    CHECK_INT(put(b.path, "one"), ==, TEC_OK);
    umask(mask);
    CHECK_INT(mode_of(b.path), ==, 0640);
    CHECK(chmod(b.path, 0604) == 0);
    CHECK_INT(put(b.path, "two"), ==, TEC_OK);
    CHECK_INT(mode_of(b.path), ==, 0604);
    expect_text(b.path, "two");
    box_remove(&b);
}

TEST(a_name_may_be_as_long_as_names_can_be)
{
    struct box b;
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    box_make(&b);
    box_path(&b, name);
    CHECK_INT(put(b.path, "x"), ==, TEC_OK);
    expect_text(b.path, "x");
    box_remove(&b);
}

TEST(a_link_stays_and_its_target_is_the_file)
{
    struct box b;
    char far[500];
    box_make(&b);
    box_put(&b, "deep/target", "old");
    snprintf(far, sizeof far, "%s", b.path);
    box_path(&b, "link");
    CHECK(symlink("deep/second", b.path) == 0);
    box_path(&b, "deep/second");
    CHECK(symlink("target", b.path) == 0);
    box_path(&b, "dangling");
    CHECK(symlink("deep/made", b.path) == 0);
    CHECK_INT(put(b.path, "made"), ==, TEC_OK);
    expect_text(b.path, "made");
    snprintf(b.path, sizeof b.path, "%s/link", b.dir);
    CHECK_INT(put(b.path, "new"), ==, TEC_OK);
    expect_text(far, "new");
    struct stat st;
    CHECK(lstat(b.path, &st) == 0 && S_ISLNK(st.st_mode));
    box_path(&b, "round");
    CHECK(symlink("round", b.path) == 0);
    CHECK_INT(put(b.path, "x"), ==, TEC_IO);
    CHECK(strstr(err.message, "symbolic links"));
    box_remove(&b);
}

TEST(a_fifo_is_written_or_refused_and_stays)
{
    struct box b;
    char got[20] = "";
    struct tec_out_file out = {0};
    box_make(&b);
    box_path(&b, "fifo");
    REQUIRE(mkfifo(b.path, 0600) == 0);
    CHECK_INT(put(b.path, "lost"), ==, TEC_IO); /* waiting would hang here */
    CHECK(strstr(err.message, "a FIFO that nobody reads"));
    int reader = open(b.path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    REQUIRE(reader >= 0);
    CHECK_INT(put(b.path, "through"), ==, TEC_OK);
    CHECK_INT(read(reader, got, sizeof got), ==, 7);
    CHECK_STR(got, "through");
    CHECK_INT(tec_outfile_file_open_regular(&out, b.path, &err), ==, TEC_IO);
    CHECK(strstr(err.message, "is a FIFO; name a regular file"));
    close(reader);
    struct stat st;
    CHECK(lstat(b.path, &st) == 0 && S_ISFIFO(st.st_mode));
    CHECK_INT(count_files(b.dir), ==, 1);
    box_remove(&b);
}

TEST(a_device_is_written_and_stays)
{
    struct box b;
    struct stat st;
    box_make(&b);
    box_path(&b, "null");
    if (mknod(b.path, S_IFCHR | 0600, makedev(1, 3)) != 0) { /* a node of the test's own */
        box_remove(&b);
        SKIP("nodes of devices cannot be made here");
    }
    int own = open(b.path, O_WRONLY | O_CLOEXEC);
    if (own < 0) {
        box_remove(&b);
        SKIP("nodes of devices cannot be opened here");
    }
    close(own);
    CHECK_INT(put(b.path, "away"), ==, TEC_OK);
    CHECK(lstat(b.path, &st) == 0 && S_ISCHR(st.st_mode));
    CHECK_INT(count_files(b.dir), ==, 1);
    box_remove(&b);
}

TEST(folders_and_sockets_are_refused)
{
    struct box b;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    box_make(&b);
    CHECK_INT(put(b.dir, "x"), ==, TEC_IO);
    CHECK(strstr(err.message, "is a directory; output goes to a regular file"));
    CHECK_INT(tec_outfile_file_check(b.dir, &err), ==, TEC_IO);
    box_path(&b, "socket");
    REQUIRE(strlen(b.path) < sizeof at.sun_path);
    memcpy(at.sun_path, b.path, strlen(b.path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
    CHECK_INT(put(b.path, "x"), ==, TEC_IO);
    CHECK(strstr(err.message, "is a socket"));
    struct stat st;
    CHECK(lstat(b.path, &st) == 0 && S_ISSOCK(st.st_mode));
    close(fd);
    box_path(&b, "none/x");
    char *slash = strrchr(b.path, '/');
    *slash = '\0';
    rmdir(b.path);
    *slash = '/';
    CHECK_INT(put(b.path, "x"), ==, TEC_IO);
    CHECK(strstr(err.message, "No such file or directory"));
    CHECK_INT(tec_outfile_file_check(b.path, &err), ==, TEC_IO);
    box_path(&b, "y");
    CHECK_INT(tec_outfile_file_check(b.path, &err), ==, TEC_OK);
    CHECK_INT(count_files(b.dir), ==, 1); /* the socket: a check leaves nothing */
    box_remove(&b);
}

TEST(what_standard_output_goes_to_is_written_on)
{
    struct box b;
    box_make(&b);
    box_put(&b, "x", "");
    int kept = dup(1), file = open(b.path, O_WRONLY | O_CLOEXEC);
    REQUIRE(kept >= 0 && file >= 0);
    fflush(stdout);
    dup2(file, 1);
    ssize_t n = write(1, "before ", 7);
    enum tec_status status = put(b.path, "output");
    n += write(1, " after", 6);
    dup2(kept, 1);
    close(kept);
    close(file);
    CHECK_INT(n, ==, 13);
    CHECK_INT(status, ==, TEC_OK);
    expect_text(b.path, "before output after");
    box_remove(&b);
}

/* A limit on the size of files stands for a full disk. */
TEST(a_full_disk_is_told_and_the_old_file_stays)
{
    struct box b;
    struct tec_out_file out = {0};
    struct rlimit old, most;
    box_make(&b);
    box_put(&b, "x", "the old one");
    REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
    most = (struct rlimit){.rlim_cur = 10000, .rlim_max = old.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &most) == 0);
    enum tec_status status = tec_outfile_file_open(&out, b.path, &err);
    for (int i = 0; status == TEC_OK && i < 20000; i++)
        fputc('x', out.file);
    bool failed = out.file && ferror(out.file);
    if (status == TEC_OK)
        status = tec_outfile_file_keep(&out, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, handler);
    CHECK(failed);
    CHECK_INT(status, ==, TEC_IO);
    CHECK(strstr(err.message, "x: cannot be written: File too large"));
    expect_text(b.path, "the old one");
    CHECK_INT(count_files(b.dir), ==, 1);
    box_remove(&b);
}

TEST(only_a_regular_file_is_opened_for_reading)
{
    struct box b;
    struct stat st;
    int fd;
    box_make(&b);
    box_path(&b, "fifo");
    REQUIRE(mkfifo(b.path, 0600) == 0);
    CHECK_INT(tec_file_open_regular(&fd, &st, b.path, &err), ==, TEC_IO);
    CHECK(strstr(err.message, "is a FIFO, not a regular file"));
    CHECK_INT(tec_file_open_regular(&fd, &st, b.dir, &err), ==, TEC_IO);
    CHECK(strstr(err.message, "is a directory, not a regular file"));
    box_path(&b, "none");
    CHECK_INT(tec_file_open_regular(&fd, &st, b.path, &err), ==, TEC_NOT_FOUND);
    CHECK_INT(fd, ==, -1);
    box_put(&b, "x", "text");
    CHECK_INT(tec_file_open_regular(&fd, &st, b.path, &err), ==, TEC_OK);
    CHECK_INT(st.st_size, ==, 4);
    close(fd);
    box_remove(&b);
}

TAP_MAIN
