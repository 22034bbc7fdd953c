/*
 * Stands between a process and the C library (LD_PRELOAD) for the files of one folder: lets the n-th call of a kind fail, fail for good, do
 * half of its work or stop the process; and writes down all that changes the files, in the order of all processes that share the control.
 * SQLite calls the C library for each of these, so what it meets is what a bad disk would give it.
 *
 * QUEUEFS_FILE_CALLS_FOLDER: whose files are meant. QUEUEFS_FILE_CALLS_CONTROL: a file of the fields of `struct control`, which the test
 * writes at any time. QUEUEFS_FILE_CALLS_RECORD: where to append what happens.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { READ, WRITE, SYNC, TRUNCATE, OPEN, MAP, UNLINK, STAT };
enum action { HALF = -1, STOP = -2, DROP = -3 };

/* Eight bytes each, in this order; test/faults/sqlite-io/file-calls.ts knows it too. */
struct control {
  int64_t kinds;     /* bit mask of the kinds that are counted and may fail */
  int64_t before;    /* how many of them go well first */
  int64_t action;    /* above 0: an errno; else an enum action; 0: nothing happens, they are only counted */
  int64_t sticky;    /* 1: all later ones fail as well */
  int64_t seen;      /* how many there were */
  int64_t struck;    /* how many failed */
  int64_t recording; /* 1: what changes files is written down */
  int64_t lying;     /* 1: a sync answers at once and does nothing */
  volatile int64_t lock;
};

#define MOST_FILES 65536
static struct control *control;
static const char *folder;
static size_t folder_length;
static int record_file = -1;
/* By descriptor: the inode of a file of the folder, or 0. */
static uint64_t inodes[MOST_FILES];

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void) {
  const char *where = getenv("QUEUEFS_FILE_CALLS_CONTROL");
  const char *record = getenv("QUEUEFS_FILE_CALLS_RECORD");
  folder = getenv("QUEUEFS_FILE_CALLS_FOLDER");
  if (!where || !folder) return;
  folder_length = strlen(folder);
  int file = open(where, O_RDWR | O_CLOEXEC);
  if (file < 0) abort();
  void *fields = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (fields == MAP_FAILED) abort();
  if (record) record_file = open(record, O_WRONLY | O_APPEND | O_CLOEXEC);
  control = fields;
}

static int is_meant(const char *path) {
  return control && path && strncmp(path, folder, folder_length) == 0 && (path[folder_length] == '/' || path[folder_length] == 0);
}

static uint64_t inode_of(int file) { return control && file >= 0 && file < MOST_FILES ? inodes[file] : 0; }

/* What is to happen to this call: 0, an errno, or an action. */
static int64_t strike(enum kind kind) {
  if (!control->action && !control->kinds) return 0;
  if (!(control->kinds >> kind & 1)) return 0;
  int64_t number = __atomic_fetch_add(&control->seen, 1, __ATOMIC_SEQ_CST);
  if (control->action == 0 || number < control->before || (number > control->before && !control->sticky)) return 0;
  __atomic_fetch_add(&control->struck, 1, __ATOMIC_SEQ_CST);
  if (control->action != STOP) return control->action;
  raise(SIGSTOP);
  return 0;
}

/* Between these two, no other process of the record changes a file. */
static int enter(void) {
  if (!control->recording || record_file < 0) return 0;
  for (int64_t free = 0; !__atomic_compare_exchange_n(&control->lock, &free, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); free = 0)
    sched_yield();
  return 1;
}

static void leave(int entered) {
  if (entered) __atomic_store_n(&control->lock, 0, __ATOMIC_SEQ_CST);
}

static void record(int entered, enum kind kind, uint64_t inode, int64_t offset, const void *data, size_t length) {
  if (!entered) return;
  int64_t head[4] = {kind, (int64_t)inode, offset, (int64_t)length};
  struct iovec parts[2] = {{head, sizeof head}, {(void *)data, length}};
  ssize_t written = writev(record_file, parts, 2);
  if (written != (ssize_t)(sizeof head + length)) abort();
}

#define FAIL(value) \
  do { \
    errno = (int)strikes; \
    return value; \
  } while (0)

/* The call that is not counted. */
static int about_file(int file, struct stat64 *about) {
  REAL(fstat64);
  return real(file, about);
}

static int open_meant(const char *path, int flags, mode_t mode, int (*real)(const char *, int, ...)) {
  int64_t strikes = strike(OPEN);
  if (strikes > 0) FAIL(-1);
  int entered = enter();
  int file = real(path, flags, mode);
  struct stat64 about;
  if (file >= 0 && file < MOST_FILES && about_file(file, &about) == 0) {
    inodes[file] = about.st_ino;
    record(entered, OPEN, about.st_ino, S_ISDIR(about.st_mode), path, strlen(path));
  }
  leave(entered);
  return file;
}

int open64(const char *path, int flags, ...) {
  REAL(open64);
  va_list rest;
  va_start(rest, flags);
  mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return is_meant(path) ? open_meant(path, flags, mode, real) : real(path, flags, mode);
}

int close(int file) {
  REAL(close);
  if (file >= 0 && file < MOST_FILES) inodes[file] = 0;
  return real(file);
}

ssize_t pread64(int file, void *data, size_t length, off64_t offset) {
  REAL(pread64);
  int64_t strikes = inode_of(file) ? strike(READ) : 0;
  if (strikes > 0) FAIL(-1);
  return real(file, data, length, offset);
}

ssize_t pwrite64(int file, const void *data, size_t length, off64_t offset) {
  REAL(pwrite64);
  uint64_t inode = inode_of(file);
  if (!inode) return real(file, data, length, offset);
  int64_t strikes = strike(WRITE);
  if (strikes > 0) FAIL(-1);
  if (strikes == HALF) {
    /* Half of it fits; of what comes after the first time, nothing. */
    if (control->struck > 1) {
      errno = ENOSPC;
      return -1;
    }
    length = (length + 1) / 2;
  }
  if (strikes == DROP) return (ssize_t)length;
  int entered = enter();
  ssize_t written = real(file, data, length, offset);
  if (written > 0) record(entered, WRITE, inode, offset, data, (size_t)written);
  leave(entered);
  return written;
}

static int sync_with(int file, int (*real)(int)) {
  uint64_t inode = inode_of(file);
  if (!inode) return real(file);
  int64_t strikes = strike(SYNC);
  if (strikes > 0) FAIL(-1);
  if (control->lying) return 0;
  int entered = enter();
  int answer = real(file);
  if (answer == 0) record(entered, SYNC, inode, 0, "", 0);
  leave(entered);
  return answer;
}

int fsync(int file) {
  REAL(fsync);
  return sync_with(file, real);
}

int fdatasync(int file) {
  REAL(fdatasync);
  return sync_with(file, real);
}

int ftruncate64(int file, off64_t length) {
  REAL(ftruncate64);
  uint64_t inode = inode_of(file);
  if (!inode) return real(file, length);
  int64_t strikes = strike(TRUNCATE);
  if (strikes > 0) FAIL(-1);
  int entered = enter();
  int answer = real(file, length);
  if (answer == 0) record(entered, TRUNCATE, inode, length, "", 0);
  leave(entered);
  return answer;
}

void *mmap64(void *address, size_t length, int protection, int flags, int file, off64_t offset) {
  REAL(mmap64);
  int64_t strikes = inode_of(file) ? strike(MAP) : 0;
  if (strikes > 0) FAIL(MAP_FAILED);
  return real(address, length, protection, flags, file, offset);
}

int unlink(const char *path) {
  REAL(unlink);
  if (!is_meant(path)) return real(path);
  int64_t strikes = strike(UNLINK);
  if (strikes > 0) FAIL(-1);
  int entered = enter();
  int answer = real(path);
  if (answer == 0) record(entered, UNLINK, 0, 0, path, strlen(path));
  leave(entered);
  return answer;
}

int fstat64(int file, struct stat64 *about) {
  REAL(fstat64);
  int64_t strikes = inode_of(file) ? strike(STAT) : 0;
  if (strikes > 0) FAIL(-1);
  return real(file, about);
}
