/* What meets.c and meets2.c share. */
#pragma once

#include <sys/types.h>

void nap(void);
/* A child that does `act` after a nap. */
pid_t later(void (*act)(void));
/* Waits for it. */
void together(void);
/* " text N", or the error. */
void say(const char *what, long result);
void line(void);
void write_all(int fd, const void *data, size_t len);
void pipes(int p[2]);
void close_all(int p[2]);
long sendfile_all(int out, int in, off_t *at, size_t count);
void sockets(const char *place); /* meets2.c */
