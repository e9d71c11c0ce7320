/* surge THREADS: `1` on standard input makes all threads busy and is answered by the time (ns), `0` makes them rest. */
#include "load.h"
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static volatile int busy;

static void *spin(void *unused) {
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!busy)
            pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        while (busy)
            work(1000);
    }
    return unused;
}

int main(int count, char **words) {
    if (count != 2)
        return 2;
    start("ready");
    for (uint64_t i = 0; i < number(words[1]); i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, spin, NULL);
    }
    char command[16];
    while (fgets(command, sizeof command, stdin)) {
        uint64_t at = now_ns();
        pthread_mutex_lock(&lock);
        busy = command[0] == '1';
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
        printf("%llu\n", (unsigned long long)at);
        fflush(stdout);
    }
    return 0;
}
