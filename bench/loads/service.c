/* service THREADS ROUNDS HOLD_MIB: answers each datagram on loopback after ROUNDS of work.
   With HOLD_MIB it keeps that much memory and touches some of it for each request. Says its port when ready. */
#include "load.h"
#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

enum { PAGE = 4096, TOUCHED = 16, BACKLOG = 16 << 20 };

static int served;
static uint64_t rounds, pages;
static volatile char *held;

static void touch(uint64_t *state) {
    for (int i = 0; pages && i < TOUCHED; i++)
        held[scramble(state) % pages * PAGE]++;
}

static void *serve(void *number_of) {
    uint64_t state = (uintptr_t)number_of + 1;
    char request[64];
    struct sockaddr_in from;
    for (;;) {
        socklen_t length = sizeof from;
        ssize_t size = recvfrom(served, request, sizeof request, 0, (struct sockaddr *)&from, &length);
        if (size <= 0)
            continue;
        work(rounds);
        touch(&state);
        sendto(served, request, size, 0, (struct sockaddr *)&from, length);
    }
    return NULL;
}

static int listening(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof at;
    int backlog = BACKLOG;
    served = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (served < 0 || bind(served, (struct sockaddr *)&at, sizeof at) || getsockname(served, (struct sockaddr *)&at, &length))
        die("service");
    if (setsockopt(served, SOL_SOCKET, SO_RCVBUFFORCE, &backlog, sizeof backlog))
        setsockopt(served, SOL_SOCKET, SO_RCVBUF, &backlog, sizeof backlog);
    return ntohs(at.sin_port);
}

int main(int count, char **words) {
    if (count != 4)
        return 2;
    char port[16];
    snprintf(port, sizeof port, "%d", listening());
    start(port);
    rounds = number(words[2]);
    size_t bytes = number(words[3]) << 20;
    if (bytes) {
        /* Charged to the cgroup it is in by now. */
        held = malloc(bytes);
        if (!held)
            die("service");
        memset((char *)held, 1, bytes);
        pages = bytes / PAGE;
    }
    puts("serving");
    fflush(stdout);
    for (uint64_t i = 1; i < number(words[1]); i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, serve, (void *)(uintptr_t)i);
    }
    serve(NULL);
}
