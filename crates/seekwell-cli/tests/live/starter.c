/* app-start in plain C: a chain of cold page faults and small reads, while one thread reads a file and
 * another writes one. Sizes and places are drawn from the same distributions as those of the script.
 * Prints the mean of the starts in ms.
 *
 * usage: starter DIR STARTS LIBRARIES SMALL BULK_MIB PAUSE_MS */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { CALL = 256 << 10, PAGE = 4096, COMPUTE_US = 200, STEPS = 4096 };

struct step {
	int library; /* -1: a small file, read whole */
	int file;
	long off, len;
};

static const char *dir;
static long bulk;
static volatile int stop;

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

static int open_file(const char *kind, int n, int flags)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof path, "%s/%s%d", dir, kind, n);
	fd = open(path, O_RDWR | O_CREAT | flags, 0644);
	check(fd >= 0, path);
	return fd;
}

static long lognormal(double mean, double sd, long least, long most)
{
	double s2 = log(1 + sd * sd / mean / mean), u = 1 - drand48();
	double z = sqrt(-2 * log(u)) * cos(2 * M_PI * drand48());
	double x = exp(log(mean) - s2 / 2 + sqrt(s2) * z);

	return x < least ? least : x > most ? most : x;
}

static void lay_out(const char *kind, int n, long size)
{
	char *data = calloc(1, CALL);
	int fd = open_file(kind, n, O_TRUNC);
	long off;

	for (off = 0; off < size; off += CALL) {
		long len = size - off < CALL ? size - off : CALL;

		check(pwrite(fd, data, len, off) == len, "lay out");
	}
	check(fsync(fd) == 0, "sync");
	close(fd);
	free(data);
}

static void forget(const char *kind, int count)
{
	while (count-- > 0) {
		int fd = open_file(kind, count, 0);

		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		close(fd);
	}
}

static void *load(void *write)
{
	char *data = calloc(1, CALL);
	int fd = open_file(write ? "written" : "bulk", 0, write ? O_TRUNC : 0);
	long off;

	for (off = 0; !stop; off = (off + CALL) % bulk) {
		if (off == 0 && !write)
			posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		if (write)
			check(pwrite(fd, data, CALL, off) == CALL, "write");
		else
			check(pread(fd, data, CALL, off) == CALL, "read");
	}
	close(fd);
	return NULL;
}

static void carry_out(const struct step *s)
{
	static char data[16 << 10];
	double end;
	int fd = open_file(s->library >= 0 ? "lib" : "small", s->file, 0);
	long at;

	if (s->library >= 0) {
		volatile char *map = mmap(NULL, s->len, PROT_READ, MAP_SHARED, fd, s->off);

		check(map != MAP_FAILED, "map");
		for (at = 0; at < s->len; at += PAGE)
			(void)map[at];
		munmap((void *)map, s->len);
	} else {
		while (read(fd, data, sizeof data) > 0)
			;
	}
	close(fd);
	for (end = now() + COMPUTE_US / 1e6; now() < end;)
		;
}

int main(int argc, char **argv)
{
	static struct step steps[STEPS];
	int starts, libraries, small, count = 0, i, n;
	pthread_t reader, writer;
	double sum = 0;

	check(argc == 7, "usage: starter DIR STARTS LIBRARIES SMALL BULK_MIB PAUSE_MS");
	dir = argv[1];
	starts = atoi(argv[2]);
	libraries = atoi(argv[3]);
	small = atoi(argv[4]);
	bulk = atol(argv[5]) << 20;
	srand48(1);
	for (i = 0; i < libraries; i++) {
		long size = lognormal(400e3, 900e3, 64 << 10, 4 << 20);
		long faults = size / (192 << 10);

		lay_out("lib", i, size);
		for (n = faults > 1 ? faults : 1; n > 0 && count < STEPS; n--) {
			long len = (1 + lrand48() % 32) * PAGE, room = size > len ? size - len : 0;
			long off = room ? lrand48() % (room / PAGE + 1) * PAGE : 0;

			len = len < size - off ? len : size - off;
			steps[count++] = (struct step){ i, i, off, len };
		}
	}
	for (i = 0; i < small && count < STEPS; i++) {
		lay_out("small", i, lognormal(4e3, 8e3, 100, 64 << 10));
		steps[count++] = (struct step){ -1, i, 0, 0 };
	}
	for (i = count - 1; i > 0; i--) {
		int other = lrand48() % (i + 1);
		struct step s = steps[i];

		steps[i] = steps[other];
		steps[other] = s;
	}
	lay_out("bulk", 0, bulk);
	check(pthread_create(&reader, NULL, load, NULL) == 0, "a thread");
	check(pthread_create(&writer, NULL, load, "w") == 0, "a thread");
	for (n = 0; n < starts; n++) {
		double began;

		usleep(atoi(argv[6]) * 1000);
		forget("lib", libraries);
		forget("small", small);
		began = now();
		for (i = 0; i < count; i++)
			carry_out(&steps[i]);
		sum += now() - began;
	}
	stop = 1;
	pthread_join(reader, NULL);
	pthread_join(writer, NULL);
	printf("%f\n", sum / starts * 1e3);
	return 0;
}
