/* fsync-latency in plain C: one thread thinks, appends 4 KiB and syncs, another fills two files in
 * turn without a pause. Prints the mean of the fsyncs in ms.
 *
 * usage: syncer DIR SECONDS BULK_MIB */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { CALL = 256 << 10, APPEND = 4 << 10, THINK_US = 100000 };

static const char *dir;
static double end;
static long bulk;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void check(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static int open_file(const char *name, int flags)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | flags, 0644);
	check(fd >= 0, path);
	return fd;
}

static void *writer(void *unused)
{
	char *data = calloc(1, CALL);
	int n;

	for (n = 0; now() < end; n = 1 - n) {
		int fd = open_file(n ? "bulk.1" : "bulk.0", O_TRUNC);
		long off;

		for (off = 0; off < bulk && now() < end; off += CALL)
			check(pwrite(fd, data, CALL, off) == CALL, "write");
		close(fd);
	}
	return unused;
}

int main(int argc, char **argv)
{
	char data[APPEND] = { 0 };
	double sum = 0, began;
	int count = 0, fd;
	pthread_t other;

	check(argc == 4, "usage: syncer DIR SECONDS BULK_MIB");
	dir = argv[1];
	end = now() + atof(argv[2]);
	bulk = atol(argv[3]) << 20;
	fd = open_file("log", O_APPEND);
	check(pthread_create(&other, NULL, writer, NULL) == 0, "a thread");
	while (now() < end) {
		usleep(THINK_US);
		check(write(fd, data, APPEND) == APPEND, "append");
		began = now();
		check(fsync(fd) == 0, "fsync");
		sum += now() - began;
		count++;
	}
	pthread_join(other, NULL);
	printf("%f\n", sum / count * 1e3);
	return 0;
}
