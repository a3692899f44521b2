/*
 * bench-arm: a generated set of inverse dynamics. A seven-joint arm with the kinematics of a KUKA LWR and link masses
 * of its size follows smooth random trajectories at four speeds; a row has 21 inputs (angle, velocity and acceleration
 * of each joint) and 7 targets (torques), all as sensors would give them.
 *
 *   bench-arm FILE [rows=200000] [seed=0] [noise=1]    FILE: NPY, or CSV with names where it ends in .csv
 *   bench-arm --check                                  the dynamics against energies, trajectories against differences
 *
 * Torques are those of the recursive Newton-Euler algorithm (Luh, Walker and Paul 1980; Featherstone 2008, section 5.3)
 * on frames of Craig's convention, plus viscous and smoothed Coulomb friction. Rows come in the order of time, 1000 of
 * a trajectory at 100 Hz; a row depends on the seed and its number only, so that small tables begin large ones. Units:
 * rad, s, kg, m, N m. noise multiplies the noise of all sensors. 28 numbers a row; about 3 microseconds.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define PI      3.14159265358979323846
#define GRAVITY 9.81

enum { JOINTS = 7, COLUMNS = 4 * JOINTS, WAVES = 5, TRAJECTORY = 1000, RATE = 100 };

/* A link and the joint before it: frame i is that of frame i-1 turned by `twist` about x, moved by `offset` along the
 * new z and turned by the angle of the joint about it. Centre of mass and inertia about it (xx yy zz xy xz yz) in the
 * link's own frame. The last link carries a tool. */
typedef struct link {
    double twist, offset, mass, center[3], inertia[6];
    double limit, speed;     /* of the joint: |q| and |qd| at most */
    double viscous, coulomb; /* friction */
    double noise;            /* standard deviation of the torque sensor */
} link;

static const link arm[JOINTS] = {
    {0.0, 0.31, 2.7, {0.001, -0.030, -0.110}, {0.0160, 0.0150, 0.0065, 0, 0, -0.0030}, 2.96, 1.9, 1.2, 1.0, 0.10},
    {PI / 2, 0.0, 2.7, {0.001, 0.110, 0.032}, {0.0160, 0.0065, 0.0150, 0, 0, 0.0030}, 2.09, 1.9, 1.2, 1.0, 0.20},
    {-PI / 2, 0.4, 2.6, {-0.001, 0.028, -0.120}, {0.0150, 0.0140, 0.0060, 0, 0, -0.0028}, 2.96, 2.2, 0.8, 0.7, 0.10},
    {-PI / 2, 0.0, 2.6, {0.001, -0.105, 0.030}, {0.0150, 0.0060, 0.0140, 0, 0, -0.0028}, 2.09, 2.2, 0.8, 0.7, 0.10},
    {PI / 2, 0.39, 1.7, {0.0, -0.020, -0.130}, {0.0090, 0.0085, 0.0030, 0, 0, 0.0012}, 2.96, 2.3, 0.5, 0.4, 0.05},
    {PI / 2, 0.0, 1.6, {0.0, 0.010, 0.012}, {0.0030, 0.0030, 0.0025, 0, 0, 0.0004}, 2.09, 3.1, 0.3, 0.3, 0.02},
    {-PI / 2,
     0.078,
     1.4,
     {0.035, 0.015, 0.085},
     {0.0055, 0.0050, 0.0022, 0.0002, 0.0005, 0.0003},
     2.96,
     3.1,
     0.2,
     0.2,
     0.01},
};
static const double sensor[3] = {5e-4, 5e-3, 0.05};  /* standard deviations: angle, velocity, acceleration */
static const double speeds[] = {0.5, 1.0, 2.0, 3.0}; /* of trajectories, by turns: factors of all frequencies */
static const double slowest = 0.05, fastest = 0.30;  /* Hz, at speed 1 */
static const double smooth = 0.05;                   /* Coulomb friction is full beyond a few of these, rad/s */

typedef struct state {
    double q[JOINTS], qd[JOINTS], qdd[JOINTS];
} state;

/* --- vectors ------------------------------------------------------------------------------------------------------ */

static double dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const double *a, const double *b, double *out)
{
    double x = a[1] * b[2] - a[2] * b[1], y = a[2] * b[0] - a[0] * b[2], z = a[0] * b[1] - a[1] * b[0];
    out[0] = x, out[1] = y, out[2] = z;
}

static void add(double scale, const double *a, double *out)
{
    for (int k = 0; k < 3; k++) {
        out[k] += scale * a[k];
    }
}

/* out += a x b */
static void add_cross(const double *a, const double *b, double *out)
{
    double c[3];
    cross(a, b, c);
    add(1.0, c, out);
}

/* R a, or R' a; out is not a. */
static void turn(double R[3][3], const double *a, double *out)
{
    for (int k = 0; k < 3; k++) {
        out[k] = dot(R[k], a);
    }
}

static void turn_back(double R[3][3], const double *a, double *out)
{
    for (int k = 0; k < 3; k++) {
        out[k] = R[0][k] * a[0] + R[1][k] * a[1] + R[2][k] * a[2];
    }
}

static void times_inertia(const double *I, const double *a, double *out)
{
    out[0] = I[0] * a[0] + I[3] * a[1] + I[4] * a[2];
    out[1] = I[3] * a[0] + I[1] * a[1] + I[5] * a[2];
    out[2] = I[4] * a[0] + I[5] * a[1] + I[2] * a[2];
}

/* --- the arm ------------------------------------------------------------------------------------------------------ */

/* Frame i in frame i-1: its axes are the columns of R, its origin p. */
static void frame(const link *l, double q, double R[3][3], double *p)
{
    double c = cos(q), s = sin(q), ct = cos(l->twist), st = sin(l->twist);
    double rows[3][3] = {{c, -s, 0.0}, {s * ct, c * ct, -st}, {s * st, c * st, ct}};
    memcpy(R, rows, sizeof rows);
    p[0] = 0.0, p[1] = -st * l->offset, p[2] = ct * l->offset;
}

/* Motion of link i in its own frame from that of the link before it: angular velocity w, its derivative, and the
 * acceleration a of the origin. In place. */
static void move(double R[3][3], const double *p, double qd, double qdd, double *w, double *wd, double *a)
{
    double inner[3], spin[3] = {0.0, 0.0, qd};
    cross(w, p, inner);
    add_cross(w, inner, a);
    add_cross(wd, p, a);
    double old_w[3] = {w[0], w[1], w[2]}, old_wd[3] = {wd[0], wd[1], wd[2]}, old_a[3] = {a[0], a[1], a[2]};
    turn_back(R, old_w, w);
    turn_back(R, old_wd, wd);
    turn_back(R, old_a, a);
    add_cross(w, spin, wd);
    w[2] += qd;
    wd[2] += qdd;
}

/* Force on link l, and moment about its centre of mass, that its motion needs. */
static void needs(const link *l, const double *w, const double *wd, const double *a, double *force, double *moment)
{
    double inner[3], momentum[3], at_center[3] = {a[0], a[1], a[2]};
    cross(w, l->center, inner);
    add_cross(w, inner, at_center);
    add_cross(wd, l->center, at_center);
    for (int k = 0; k < 3; k++) {
        force[k] = l->mass * at_center[k];
    }
    times_inertia(l->inertia, wd, moment);
    times_inertia(l->inertia, w, momentum);
    add_cross(w, momentum, moment);
}

/* Torques of the rigid arm: outward over the links for motions, inward for forces. Gravity is a base that accelerates
 * upwards. */
static void inverse_dynamics(const state *s, double *torque)
{
    double R[JOINTS][3][3], p[JOINTS][3], force[JOINTS][3], moment[JOINTS][3];
    double w[3] = {0}, wd[3] = {0}, a[3] = {0.0, 0.0, GRAVITY}, f[3] = {0}, n[3] = {0};
    for (int i = 0; i < JOINTS; i++) {
        frame(&arm[i], s->q[i], R[i], p[i]);
        move(R[i], p[i], s->qd[i], s->qdd[i], w, wd, a);
        needs(&arm[i], w, wd, a, force[i], moment[i]);
    }
    for (int i = JOINTS - 1; i >= 0; i--) {
        add(1.0, moment[i], n);
        add_cross(arm[i].center, force[i], n);
        add(1.0, force[i], f);
        torque[i] = n[2];
        double inner[3] = {n[0], n[1], n[2]}, pull[3] = {f[0], f[1], f[2]};
        turn(R[i], pull, f);
        turn(R[i], inner, n);
        add_cross(p[i], f, n);
    }
}

static double friction(const link *l, double qd)
{
    return l->viscous * qd + l->coulomb * tanh(qd / smooth);
}

/* --- trajectories ------------------------------------------------------------------------------------------------- */

/* q_j(t) = center_j + sum_k size_jk sin(omega_jk t + phase_jk) */
typedef struct trajectory {
    double center[JOINTS], size[JOINTS][WAVES], omega[JOINTS][WAVES], phase[JOINTS][WAVES];
} trajectory;

/* Centres within half the range; the waves use a random share of what is left on both sides, less where the joint would
 * be too fast. */
static void draw_trajectory(uint64_t seed, int64_t number, trajectory *out)
{
    thi_stream stream = {seed, THI_RANDOM_DEMO, (uint64_t)number};
    double speed = speeds[number % (int64_t)(sizeof speeds / sizeof *speeds)];
    uint64_t next = 0;
    for (int j = 0; j < JOINTS; j++) {
        double sum = 0.0, rush = 0.0, limit = arm[j].limit;
        out->center[j] = limit * (thi_random_uniform(stream, next++) - 0.5);
        double room = (limit - fabs(out->center[j])) * (0.3 + 0.7 * thi_random_uniform(stream, next++));
        for (int k = 0; k < WAVES; k++) {
            double hertz = speed * (slowest + (fastest - slowest) * thi_random_uniform(stream, next++));
            out->omega[j][k] = 2.0 * PI * hertz;
            out->phase[j][k] = 2.0 * PI * thi_random_uniform(stream, next++);
            out->size[j][k] = thi_random_uniform(stream, next++);
            sum += out->size[j][k];
            rush += out->size[j][k] * out->omega[j][k];
        }
        double scale = fmin(room / sum, arm[j].speed / rush);
        for (int k = 0; k < WAVES; k++) {
            out->size[j][k] *= scale;
        }
    }
}

static void at_time(const trajectory *path, double t, state *s)
{
    for (int j = 0; j < JOINTS; j++) {
        s->q[j] = path->center[j], s->qd[j] = 0.0, s->qdd[j] = 0.0;
        for (int k = 0; k < WAVES; k++) {
            double omega = path->omega[j][k], size = path->size[j][k], angle = omega * t + path->phase[j][k];
            s->q[j] += size * sin(angle);
            s->qd[j] += size * omega * cos(angle);
            s->qdd[j] -= size * omega * omega * sin(angle);
        }
    }
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void make_row(const trajectory *path, uint64_t seed, int64_t i, double noise, double *row)
{
    thi_stream stream = {seed, THI_RANDOM_SAMPLE, (uint64_t)i};
    state s;
    at_time(path, (double)(i % TRAJECTORY) / RATE, &s);
    inverse_dynamics(&s, row + 3 * JOINTS);
    for (int j = 0; j < JOINTS; j++) {
        row[j] = s.q[j], row[JOINTS + j] = s.qd[j], row[2 * JOINTS + j] = s.qdd[j];
        row[3 * JOINTS + j] += friction(&arm[j], s.qd[j]);
    }
    for (int c = 0; c < COLUMNS; c++) {
        double size = c < 3 * JOINTS ? sensor[c / JOINTS] : arm[c - 3 * JOINTS].noise;
        row[c] += noise * size * thi_random_normal(stream, (uint64_t)c);
    }
}

static void write_header(FILE *file, int csv, int64_t rows)
{
    static const char *const names[4] = {"q", "qd", "qdd", "torque"};
    if (csv) {
        for (int c = 0; c < COLUMNS; c++) {
            fprintf(file, "%s%d%c", names[c / JOINTS], c % JOINTS + 1, c + 1 < COLUMNS ? ',' : '\n');
        }
        return;
    }
    char text[118]; /* with the ten bytes before it 128, a multiple of 64 as the format wants it */
    int length = snprintf(text, sizeof text, "{'descr': '<f8', 'fortran_order': False, 'shape': (%lld, %d), }",
                          (long long)rows, COLUMNS);
    memset(text + length, ' ', sizeof text - (size_t)length);
    text[sizeof text - 1] = '\n';
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
    fwrite(text, 1, sizeof text, file);
}

static void write_row(FILE *file, int csv, const double *row)
{
    if (!csv) {
        fwrite(row, sizeof *row, COLUMNS, file);
        return;
    }
    for (int c = 0; c < COLUMNS; c++) {
        fprintf(file, "%.9g%c", row[c], c + 1 < COLUMNS ? ',' : '\n');
    }
}

static int generate(const char *name, int64_t rows, uint64_t seed, double noise)
{
    size_t length = strlen(name);
    int csv = length > 4 && strcmp(name + length - 4, ".csv") == 0;
    FILE *file = fopen(name, "wb");
    if (file == NULL) {
        perror(name);
        return 1;
    }
    trajectory path;
    double row[COLUMNS];
    write_header(file, csv, rows);
    for (int64_t i = 0; i < rows; i++) {
        if (i % TRAJECTORY == 0) {
            draw_trajectory(seed, i / TRAJECTORY, &path);
        }
        make_row(&path, seed, i, noise, row);
        write_row(file, csv, row);
    }
    int bad = ferror(file);
    if (fclose(file) != 0 || bad) {
        fprintf(stderr, "%s: could not be written\n", name);
        return 1;
    }
    return 0;
}

/* --- checks ------------------------------------------------------------------------------------------------------- */

/* What follows knows of the arm no more than its kinematics in the frame of the base and its energies; none of it is of
 * the recursion above. */

/* Origins and axes of the joints, centres of mass and orientations of the links, in the frame of the base. */
typedef struct pose {
    double origin[JOINTS][3], axis[JOINTS][3], center[JOINTS][3], R[JOINTS][3][3];
} pose;

static void forward(const double *q, pose *out)
{
    double R[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, origin[3] = {0};
    for (int i = 0; i < JOINTS; i++) {
        double step[3][3], p[3], moved[3], next[3][3] = {{0}};
        frame(&arm[i], q[i], step, p);
        turn(R, p, moved);
        add(1.0, moved, origin);
        for (int r = 0; r < 3; r++) {
            for (int k = 0; k < 3; k++) {
                add(R[r][k], step[k], next[r]);
            }
        }
        memcpy(R, next, sizeof next);
        memcpy(out->R[i], R, sizeof R);
        memcpy(out->origin[i], origin, sizeof origin);
        turn(R, arm[i].center, out->center[i]);
        add(1.0, origin, out->center[i]);
        for (int k = 0; k < 3; k++) {
            out->axis[i][k] = R[k][2];
        }
    }
}

static double potential(const double *q)
{
    pose at;
    double sum = 0.0;
    forward(q, &at);
    for (int i = 0; i < JOINTS; i++) {
        sum += arm[i].mass * GRAVITY * at.center[i][2];
    }
    return sum;
}

/* v' M(q) u, the polar form of twice the kinetic energy: velocities of the links are sums over the joints before. */
static double kinetic(const double *q, const double *v, const double *u)
{
    pose at;
    double sum = 0.0;
    forward(q, &at);
    for (int i = 0; i < JOINTS; i++) {
        double linear[2][3] = {{0}}, angular[2][3] = {{0}}, own[2][3], momentum[3];
        for (int j = 0; j <= i; j++) {
            double arm_of[3] = {0}, velocity[3];
            add(1.0, at.center[i], arm_of);
            add(-1.0, at.origin[j], arm_of);
            cross(at.axis[j], arm_of, velocity);
            add(v[j], velocity, linear[0]), add(u[j], velocity, linear[1]);
            add(v[j], at.axis[j], angular[0]), add(u[j], at.axis[j], angular[1]);
        }
        turn_back(at.R[i], angular[0], own[0]), turn_back(at.R[i], angular[1], own[1]);
        times_inertia(arm[i].inertia, own[1], momentum);
        sum += arm[i].mass * dot(linear[0], linear[1]) + dot(own[0], momentum);
    }
    return sum;
}

/* A slope is that of the polynomial through four points (error of the fourth order). */
static const double place[4] = {-2e-3, -1e-3, 1e-3, 2e-3};
static const double weight[4] = {1e3 / 12, -8e3 / 12, 8e3 / 12, -1e3 / 12};
typedef double (*along_fn)(const double *q, const double *v, const double *u);

static double slope(along_fn of, const double *q, const double *direction, const double *v, const double *u)
{
    double sum = 0.0, moved[JOINTS];
    for (int k = 0; k < 4; k++) {
        for (int j = 0; j < JOINTS; j++) {
            moved[j] = q[j] + place[k] * direction[j];
        }
        sum += weight[k] * of(moved, v, u);
    }
    return sum;
}

static double potential_along(const double *q, const double *v, const double *u)
{
    (void)v, (void)u;
    return potential(q);
}

/* Lagrange: torque_j = (M qdd)_j + (dM/dt qd)_j - d(qd'M qd/2)/dq_j + dU/dq_j */
static void lagrange(const state *s, double *torque)
{
    for (int j = 0; j < JOINTS; j++) {
        double e[JOINTS] = {0};
        e[j] = 1.0;
        torque[j] = kinetic(s->q, e, s->qdd) + slope(kinetic, s->q, s->qd, e, s->qd) -
                    0.5 * slope(kinetic, s->q, e, s->qd, s->qd) + slope(potential_along, s->q, e, NULL, NULL);
    }
}

static double worst(const double *a, const double *b, double so_far)
{
    for (int j = 0; j < JOINTS; j++) {
        so_far = fmax(so_far, fabs(a[j] - b[j]));
    }
    return so_far;
}

/* Power that the torques bring in against the change of the energy, by differences in time along the trajectory. */
static double power_error(const trajectory *path, double t)
{
    double change = 0.0, power = 0.0, torque[JOINTS];
    state s;
    for (int k = 0; k < 4; k++) {
        at_time(path, t + place[k], &s);
        change += weight[k] * (0.5 * kinetic(s.q, s.qd, s.qd) + potential(s.q));
    }
    at_time(path, t, &s);
    inverse_dynamics(&s, torque);
    for (int j = 0; j < JOINTS; j++) {
        power += torque[j] * s.qd[j];
    }
    return fabs(power - change);
}

/* How far derivatives are from differences, and joints beyond their limits. */
static double path_error(const trajectory *path, double t, double so_far)
{
    double h = 1e-5;
    state before, now, after;
    at_time(path, t - h, &before), at_time(path, t, &now), at_time(path, t + h, &after);
    for (int j = 0; j < JOINTS; j++) {
        so_far = fmax(so_far, fabs((after.q[j] - before.q[j]) / (2.0 * h) - now.qd[j]));
        so_far = fmax(so_far, fabs((after.qd[j] - before.qd[j]) / (2.0 * h) - now.qdd[j]));
        so_far = fmax(so_far, fmax(fabs(now.q[j]) - arm[j].limit, fabs(now.qd[j]) - arm[j].speed));
    }
    return so_far;
}

static int say(const char *what, double error, double most)
{
    printf("%s  %-66s %.1e (at most %.0e)\n", error <= most ? "pass" : "FAIL", what, error, most);
    return error > most;
}

static int check(void)
{
    double dynamics = 0.0, gravity = 0.0, power = 0.0, paths = 0.0, largest = 0.0, own[JOINTS], other[JOINTS];
    for (int64_t number = 0; number < 400; number++) {
        trajectory path;
        state s;
        double t = 10.0 * thi_random_uniform((thi_stream){1, THI_RANDOM_SUBSET, 0}, (uint64_t)number);
        draw_trajectory(1, number, &path);
        at_time(&path, t, &s);
        inverse_dynamics(&s, own);
        lagrange(&s, other);
        dynamics = worst(own, other, dynamics);
        largest = worst(own, (double[JOINTS]){0}, largest);
        power = fmax(power, power_error(&path, t));
        paths = path_error(&path, t, paths);
        memset(s.qd, 0, sizeof s.qd), memset(s.qdd, 0, sizeof s.qdd);
        inverse_dynamics(&s, own);
        for (int j = 0; j < JOINTS; j++) {
            double e[JOINTS] = {0};
            e[j] = 1.0;
            other[j] = slope(potential_along, s.q, e, NULL, NULL);
        }
        gravity = worst(own, other, gravity);
    }
    printf("400 states of 400 trajectories, torques up to %.0f N m\n", largest);
    int bad = say("torques against Lagrange's equations by differences of energies, N m", dynamics, 1e-6);
    bad += say("torques at rest against the slope of the potential energy, N m", gravity, 1e-6);
    bad += say("power of the torques against the change of the energy, W", power, 1e-6);
    bad += say("qd and qdd against differences; joints beyond their limits", paths, 1e-6);
    return bad > 0;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static int usage(void)
{
    fprintf(stderr, "Usage: bench-arm FILE [rows=200000] [seed=0] [noise=1]\n       bench-arm --check\n");
    return 2;
}

int main(int argc, char **argv)
{
    static const char *const names[3] = {"rows=", "seed=", "noise="};
    double values[3] = {200000.0, 0.0, 1.0};
    if (argc == 2 && strcmp(argv[1], "--check") == 0) {
        return check();
    }
    if (argc < 2 || argv[1][0] == '-') {
        return usage();
    }
    for (int i = 2; i < argc; i++) {
        int known = 0;
        for (int k = 0; k < 3; k++) {
            const char *value = argv[i] + strlen(names[k]);
            if (strncmp(argv[i], names[k], strlen(names[k])) == 0) {
                known = thi_parse_number(value, strlen(value), &values[k]) && values[k] >= 0.0;
            }
        }
        if (!known) {
            return usage();
        }
    }
    return generate(argv[1], (int64_t)values[0], (uint64_t)values[1], values[2]);
}
