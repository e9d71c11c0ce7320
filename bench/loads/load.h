/* What every load shares: the clock, work in registers, and a start that waits until the process is in its cgroup. */
#pragma once
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define NS 1000000000ull

static inline uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * NS + t.tv_nsec;
}

static inline void sleep_until(uint64_t ns) {
    struct timespec t = {ns / NS, ns % NS};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL)) {
    }
}

static inline uint64_t scramble(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Touches no memory: what it shows of a rival is the CPU alone. */
static inline uint64_t work(uint64_t rounds) {
    uint64_t state = rounds | 1;
    while (rounds--)
        scramble(&state);
    __asm__ volatile("" : : "r"(state));
    return state;
}

static inline void die(const char *what) {
    perror(what);
    exit(1);
}

static inline uint64_t number(const char *text) { return strtoull(text, NULL, 10); }

/* Says `line` (or just that it is ready) and waits for one back: by then it has been moved. Never outlives its starter. */
static inline void start(const char *line) {
    char answer[16];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    printf("%s\n", line);
    fflush(stdout);
    if (!fgets(answer, sizeof answer, stdin))
        exit(0);
}

/* Ahead of everything measured, so that it is never itself what is late. Nothing is said where that is not allowed. */
static inline void real_time(int priority) {
    struct sched_param wanted = {.sched_priority = priority};
    sched_setscheduler(0, SCHED_FIFO, &wanted);
}
