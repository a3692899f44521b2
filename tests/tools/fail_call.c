/*
 * fail_call NAME N COMMAND...: runs a command whose N-th call NAME (from 1) of the system fails: open (for writing, or
 * of a folder), write, fsync, rename, link, close with EIO, or "space", a write with ENOSPC. Exits as the command does;
 * with 99 when there were fewer such calls; with 77 when calls can't be watched here. Only the first thread is watched.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, TOO_FEW = 99 };

#if defined(__x86_64__)
#include <sys/user.h>

static const struct {
    const char *name;
    long number;
    int reason;
} calls[] = {{"open", SYS_openat, EIO},   {"write", SYS_write, EIO},   {"space", SYS_write, ENOSPC},
             {"fsync", SYS_fsync, EIO},   {"rename", SYS_rename, EIO}, {"link", SYS_linkat, EIO},
             {"close", SYS_close, EIO},   {"pread", SYS_pread64, EIO}, {"rename", SYS_renameat, EIO},
             {"chmod", SYS_fchmod, EPERM}};
enum { CALLS = sizeof calls / sizeof *calls };

/* The index of the call that is about to be made, when it is one that is to be counted; else -1. */
static int counted(const char *name, const struct user_regs_struct *regs)
{
    for (int i = 0; i < CALLS; i++) {
        bool reading = calls[i].number == SYS_openat && (regs->rdx & (O_ACCMODE | O_DIRECTORY)) == 0;
        if (strcmp(calls[i].name, name) == 0 && (long)regs->orig_rax == calls[i].number && !reading) {
            return i;
        }
    }
    return -1;
}

static int watch(pid_t child, const char *name, long nth)
{
    int state, signal_number = 0, failing = -1;
    long seen = 0;
    bool entering = true;
    waitpid(child, &state, 0);
    ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    for (;;) {
        struct user_regs_struct regs;
        if (ptrace(PTRACE_SYSCALL, child, NULL, signal_number) != 0 || waitpid(child, &state, 0) != child) {
            return SKIPPED;
        }
        if (WIFEXITED(state)) {
            return seen < nth ? TOO_FEW : WEXITSTATUS(state);
        }
        if (WIFSIGNALED(state)) {
            return 128 + WTERMSIG(state);
        }
        signal_number = WSTOPSIG(state) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(state);
        if (signal_number != 0) {
            signal_number = signal_number == SIGTRAP ? 0 : signal_number;
            continue;
        }
        ptrace(PTRACE_GETREGS, child, NULL, &regs);
        if (entering) {
            int call = counted(name, &regs);
            seen += call >= 0;
            failing = call >= 0 && seen == nth ? call : -1;
            regs.orig_rax = failing >= 0 ? (unsigned long long)-1 : regs.orig_rax;
        } else if (failing >= 0) {
            regs.rax = (unsigned long long)-(long)calls[failing].reason;
            failing = -1;
        }
        ptrace(PTRACE_SETREGS, child, NULL, &regs);
        entering = !entering;
    }
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: fail_call NAME N COMMAND...\n");
        return 2;
    }
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
            _exit(SKIPPED);
        }
        execv(argv[3], argv + 3);
        _exit(127);
    }
    return child > 0 ? watch(child, argv[1], atol(argv[2])) : SKIPPED;
}
#else
int main(void)
{
    return SKIPPED;
}
#endif
